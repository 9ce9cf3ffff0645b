package a2a

// list answers with the tasks of an agent.
func (a *api) list(*call) (any, error) { return nil, refuse(codeUnsupported, "not yet") }
