// Package lambda is a ready-made handler that invokes a function of AWS Lambda for each task, by Amazon's library: with the credentials of the environment
// or of the machine's role, and without a public address of the function.
//
// The event is the run as JSON. What the function returns is the result of the task; if it has a statusCode, as the answer to a function's URL has, it means what
// that answer to a webhook means: see package webhook. A function that fails is a failed attempt, with its error. An invocation that Lambda refuses as one too many
// is repeated later, uncharged.
//
// With Async the function is only started. The task waits for its answer, without a slot, for as long as AnswerWithin: the event has reply_to, the path of the
// API that takes it.
package lambda
