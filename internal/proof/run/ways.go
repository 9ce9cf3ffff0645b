package main

// way is one way of trying duly: some tests, which run whole when proof.Env says so.
type way struct {
	name     string
	tests    string // a pattern for go test -run
	packages []string
}

// ways are all, in the order of docs/proof.md.
var ways = []way{
	{"torture", "TestTorture", []string{"./internal/proof/torture"}}, // the longest first
	{"histories", "TestHistories", []string{"./internal/proof/history"}},
	{"network", ".", []string{"./internal/proof/network"}},
	{"servers", ".", []string{"./internal/proof/servers"}},
	{"cluster", "^(TestSlotsAreMovedUnderWork|TestASlotThatIsBeingMoved|TestAMasterOfAClusterIsLost|TestSubmitsWhileAMasterIsLost|TestContractOnCluster|TestFencesGrowAcrossAFailover)$", []string{"./core/redisstore", "./adapters/..."}},
	{"crashes", "^(TestCrashes|TestRandomKillsKillNoTask|TestAPoisonousTaskDiesAlone)$", []string{"./core", "./internal/cli"}},
	{"soak", ".", []string{"./internal/proof/soak"}},
	{"attack", ".", []string{"./internal/attack"}},
	{"simulation", ".", []string{"./internal/sim/world"}},
}
