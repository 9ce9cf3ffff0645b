package main

// way is one way of trying duly: some tests, which run whole when proof.Env says so.
type way struct {
	name     string
	tests    string // a pattern for go test -run
	packages []string
}

// ways are all, the longest first, so that none is left over when the others have ended.
var ways = []way{
	{"attack", ".", []string{"./internal/attack"}},
	{"histories", "TestHistories", []string{"./internal/proof/history"}},
	{"torture", "TestTorture", []string{"./internal/proof/torture"}},
	{"soak", ".", []string{"./internal/proof/soak"}},
	{"network", ".", []string{"./internal/proof/network"}},
	{"servers", ".", []string{"./internal/proof/servers"}},
	{
		"cluster",
		"^(TestSlotsAreMovedUnderWork|TestASlotThatIsBeingMoved|TestAMasterOfAClusterIsLost|TestSubmitsWhileAMasterIsLost|TestContractOnCluster|TestFencesGrowAcrossAFailover)$",
		[]string{"./core/redisstore", "./adapters/daemon"},
	},
	{"crashes", "^(TestRandomKillsKillNoTask|TestPoisonousTasksDieAlone)$", []string{"./core"}}, // TestCrashes measures: make test runs it
	{"simulation", ".", []string{"./internal/proof/sim/world"}},
}
