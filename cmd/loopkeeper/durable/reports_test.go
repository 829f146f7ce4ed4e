package durable

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reported is what users of other engines report about durability, in the order of the list that this was planned by: where, what goes
// wrong there, what happens here, and the tests that say so, each with its folder.
var reported = []struct {
	where, there, here string
	tests              []string
}{
	{"druks#619", "an upgrade in place leaves every parked run a zombie: its version is a hash of the program", "a run pins its bundled script and the version of the script interface, never the program; it goes on under another build, and under another text of the same built-in workflow",
		[]string{"cmd/loopkeeper/durable.TestAnApprovalWaitsOverAnUpgrade", "cmd/loopkeeper/durable.TestAnApprovalWaitsOverAnUpgradeFromAnotherCommit", "coordinator/engine.TestARunKeepsTheScriptItBegan", "coordinator/engine.TestAScriptOfTheFirstInterfaceGoesOn"}},
	{"dbos-transact-golang#174", "nothing is recovered after the version or the executor's name has changed", "every start takes up every run that has not ended, whoever began it",
		[]string{"cmd/loopkeeper/durable.TestARunGoesOnUnderAnotherNameAndVersion"}},
	{"dbos-transact-py#805, #716, #804", "a recovered run stays pending and blocks a queue of one; a database that blinks during recovery strands runs", "a queue of one goes on after any number of restarts; a disk that fails stops the engine, and the next start finds everything, also after a crash within recovery",
		[]string{"coordinator/engine.TestAQueueOfOneIsNotBlockedByARestart", "coordinator/engine.TestAFullDiskStopsTheEngineAndLosesNothing", "cmd/loopkeeper/durable.TestCrashAtEveryDiskOperation"}},
	{"dbos-transact-py#515", "queues and results are polled each second", "nothing is polled: under fake time fifty calls in a row take none",
		[]string{"cmd/loopkeeper/durable.TestNothingIsPolled", "coordinator/engine.TestTimersSurviveRestarts"}},
	{"dbos-transact-ts#1262, golang#329, #359", "a live child starts a grandchild that escapes the cancel of its tree", "one commit ends the whole tree, and a child is made in the commit of its parent's step or not at all",
		[]string{"coordinator/engine.TestNoGrandchildEscapesACancel"}},
	{"dbos-transact-golang#304, ts#1226, java#405", "SQLite is a side path that is rarely used in production", "the ledger in one SQLite file is the only store there is, and its crash tests are this project's",
		[]string{"coordinator/ledger.TestNoAcknowledgedCommitIsLostInACrash", "coordinator/ledger.TestConformance", "coordinator/ledger.TestKilledInTheMiddle"}},
	{"river#1258", "thousands of jobs stay running for up to 90 days", "what runs is known from the machines themselves: one that goes, said or unsaid, has its calls done elsewhere within seconds",
		[]string{"coordinator/engine.TestANodeThatGoesUnsaid", "coordinator/engine.TestANodeThatIsNotThereAfterARestart"}},
	{"river#682, #773, #347", "no heartbeats: the age at which a job is rescued is the most that it may last", "a call of 20 hours over three restarts is one call; a machine is judged by its heartbeats",
		[]string{"coordinator/engine.TestALongCallIsNoFailure", "coordinator/fleet.TestSilentNodeIsLostOnceAndComesBack"}},
	{"river#1302", "a rescuer overwrites a job that has completed meanwhile", "a late result is kept as evidence and changes nothing, and an item that has ended is never called again",
		[]string{"coordinator/engine.TestLateResultsAreKeptAsEvidence", "coordinator/engine.TestCrashesAtRandomCommits"}},
	{"river#551, #672, #132, #1145", "limits by key are for paying customers, and slow", "caps and rates by name are part of every placement",
		[]string{"coordinator/engine.TestACapHoldsOverTheWholeFleet", "coordinator/engine.TestARateSpreadsTheStarts"}},
	{"go-workflows#258", "storms of \"database is busy\"", "one writer, whose turn is taken in the process, and readers of their own: nobody is turned away",
		[]string{"cmd/loopkeeper/durable.TestReadersAreNeverTurnedAway", "coordinator/ledger.TestOneCoordinatorAtATime", "coordinator/ledger.TestVerifyWhileOthersAppend"}},
	{"go-workflows#403", "after a crash a lock has to run out, and how long cannot be set", "no run and no step is locked: the next call after a restart takes no time but that of the start",
		[]string{"cmd/loopkeeper/durable.TestNothingIsPolled"}},
	{"inngest#2531", "after a restart runs stay running and cannot be cancelled, and their parents hang", "parents and children go on, and can be cancelled",
		[]string{"cmd/loopkeeper/durable.TestARunIsCancelledAfterARestart", "coordinator/engine.TestChildrenOverARestart"}},
	{"soleur#5450, #5459", "armed reminders are in another store, and lost", "a timer is an event in the one ledger, and fires after any restart",
		[]string{"coordinator/engine.TestTimersSurviveRestarts", "cmd/loopkeeper/durable.TestCrashAtEveryDiskOperation"}},
	{"flowershow#813, swc-web#1906", "a run may have 1,000 steps, so that users batch by hand", "10,000 steps and 100,000 items are one run, and what lists show of it does not grow",
		[]string{"cmd/loopkeeper/durable.TestLongRunsStayWithinTheirMemory", "coordinator/engine.TestARowDoesNotGrowWithItsItems"}},
	{"inngest#3069", "code between steps runs again, and its log lines come twice", "a line is recorded once and silent on replay",
		[]string{"coordinator/engine.TestALogLineIsWrittenOnce", "coordinator/script.TestAThousandRestartsAtRandomPointsChangeNothing"}},
	{"pydantic-ai#7157, #7110", "a result beyond the limit of the transport is made again for ever", "it ends its attempt for good, and the message names the limit",
		[]string{"coordinator/engine.TestAResultThatIsTooLargeEnds", "coordinator/dispatch.TestAnAnswerTooLargeIsTakenOnce", "coordinator/engine.TestATextTooLargeForAScript"}},
	{"temporal#1069", "a run is ended at its 51,200th event", "no number of events ends a run: a batch of 10,000 has 20,000 and more",
		[]string{"cmd/loopkeeper/durable.TestLongRunsStayWithinTheirMemory", "coordinator/script.TestReplayIsLinear"}},
	{"restate#5196", "an attempt hangs, its run is parked on it, and the key is held for good", "a call that makes no progress is a stall, which ends the attempt; its slot is held until its worker confirms",
		[]string{"worker/serve.TestCallThatHangsStallsSoonOnAModelThatIsLoaded", "worker/calls.TestSilenceIsAStall", "coordinator/engine.TestACancelledCallHoldsItsSlotUntilItsWorkerConfirms"}},
	{"restate#3291", "limits cannot be declared, and nobody sees what waits for them", "limits are settings, and who holds and who waits is shown",
		[]string{"coordinator/engine.TestACapHoldsOverTheWholeFleet", "coordinator/engine.TestAQueueCountsWhatAPlacementIsNotShown"}},
	{"hatchet#4804, #2866, #1996", "what waits for a rate holds a slot, and the queue deadlocks; a run is running after all of its tasks", "caps, rates and slots are one decision; a run's state follows from its steps in the same commit",
		[]string{"coordinator/engine.TestToolsShareABoundedPool", "coordinator/engine.TestARateSpreadsTheStarts", "coordinator/run.TestAnyHistory"}},
	{"hatchet's, river's and loomcycle's defaults", "a call may take 60 s to two minutes", "no call has a limit of time unless its user sets one; waiting and parked time do not count",
		[]string{"coordinator/engine.TestALongCallIsNoFailure", "coordinator/run.TestTheDefaultBudgetGrowsWithTheFanOut"}},
	{"windmill#2639, #7072", "approvals in parallel branches are passed over; to restart from a step is hard to find", "an approval is an event like any other, in any branch; a fork from a step shares what was recorded before",
		[]string{"coordinator/engine.TestApprovalsInsideAFanOut", "coordinator/engine.TestAForkFromAStep"}},
	{"pikku#1040", "replay makes a round trip for each step before, and a transition is three writes", "replay is one read and linear, and a transition is one commit, whichever commit the process dies in",
		[]string{"coordinator/engine.TestOneTransitionIsOneWrite", "coordinator/engine.TestOneCommitPerStep", "coordinator/script.TestReplayIsLinear"}},
	{"bantzv2#511, pflow#140", "users build it themselves: a durable line for each item, resume, partial results that say so", "each item is durable when it has ended, what failed is done again alone, and what is missing makes a run incomplete",
		[]string{"coordinator/engine.TestARetryDoesOnlyWhatFailed", "cmd/loopkeeper/system.TestKilledProcesses", "cmd/loopkeeper/system.TestFaultsWithoutRetriesAreListed"}},
	{"loomcycle#359", "a budget runs on while a run is parked, and blames an innocent line; the order of keys breaks the replay", "parked time does not count, in a fan-out of 32 × 10 minutes either; a script that writes its inputs out replays over 1,000 restarts",
		[]string{"coordinator/engine.TestParkedTimeInAFanOut", "coordinator/script.TestTimeParkedInAFanOutIsNoTimeOut", "coordinator/script.TestAThousandRestartsAtRandomPointsChangeNothing"}},
}

const (
	rowsBegin = "<!-- reported: written by go test ./cmd/loopkeeper/durable -run Report -update -->\n"
	rowsEnd   = "<!-- /reported -->\n"
)

var update = flag.Bool("update", false, "write what was reported into docs/durability.md")

// Each report has its tests, which are where the list says, and the page shows it.
func TestEveryReportHasATest(t *testing.T) {
	var b strings.Builder
	b.WriteString("| | reported | what goes wrong there | what happens here | tests |\n|--:|---|---|---|---|\n")
	there := map[string]map[string]bool{}
	for i, r := range reported {
		var names []string
		for _, name := range r.tests {
			folder, test, _ := strings.Cut(name, ".")
			if there[folder] == nil {
				there[folder] = testsIn(t, folder)
			}
			if !there[folder][test] {
				t.Errorf("row %d, %s: there is no test %s", i+1, r.where, name)
			}
			names = append(names, fmt.Sprintf("`%s` (%s)", test, folder))
		}
		if len(names) == 0 {
			t.Errorf("row %d, %s, has no test", i+1, r.where)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", i+1, r.where, r.there, r.here, strings.Join(names, ", "))
	}
	if want := 26; len(reported) != want {
		t.Errorf("%d rows, want %d", len(reported), want)
	}
	shown(t, b.String())
}

// shown holds the page to the rows.
func shown(t *testing.T, want string) {
	t.Helper()
	path := filepath.Join(top(t), "docs", "durability.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), rowsBegin)
	is, after, ends := strings.Cut(rest, rowsEnd)
	switch {
	case !begins || !ends:
		t.Error("docs/durability.md has no place for the reports")
	case is == want:
	case *update:
		if err := os.WriteFile(path, []byte(before+rowsBegin+want+rowsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/durability.md shows other reports: go test ./cmd/loopkeeper/durable -run Report -update")
	}
}

// testsIn are the names of the tests in a folder, whatever platform they are for.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top(t), folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}
