// Package langgraph serves the crons of LangGraph's API, so that clients of LangGraph schedule runs with duly: the six calls below /runs/crons and
// /threads/{thread_id}/runs/crons. An assistant there is an agent here, and a cron a recurring task of the kind [Kind].
//
// [Door] has the calls, and [Runs] makes of a task what is posted to the runs API of the server that has the graphs. All state is in tasks, so that
// any process continues what another one has begun.
package langgraph
