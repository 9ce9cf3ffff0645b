package main

// What the tests' own program is made of: the parts of main.
var (
	Build           = build
	Serve           = serve
	Handlers        = handlers
	Settings        = settings
	ReportInit      = reportInit
	ReadEnvironment = readEnvironment
	Webhooks        = webhooks
)
