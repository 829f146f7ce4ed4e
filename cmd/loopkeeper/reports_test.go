package main_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// reported is what users of other programs report about fit and placement, by the row of the list that this was planned by, with where
// it was reported, what goes wrong there, and the tests that say it does not here: the folder of each and its name.
var reported = map[int]struct {
	where, what string
	tests       []string
}{
	1: {"ollama#17251", "ps shows a fraction of the memory that is gone", []string{"worker/serve.TestPSSays12GBAndTheCardLost90", "scheduler.TestPSShowsAFractionOfWhatIsTaken"}},
	2: {"ollama#10445", "ps says 100 % GPU while the processor computes", []string{"scheduler.TestPSSaysGPUWhileTheCPUComputes"}},
	3: {"ollama#12323", "in Docker the GPU is lost after hours", []string{"coordinator/fleet.TestDockerLosesTheGPUAndTheNodeTakesNoGPUCalls",
		"scheduler.TestLostGPUIsUnknownNotFull", "scheduler.TestALostGPUGetsNoCalls"}},
	4: {"ollama#12062", "of an APU only the carve-out counts", []string{"scheduler.TestAPUHasMoreThanItsCarveOut"}},
	5: {"gpustack#4848", "a Strix Halo is seen with 512 MiB", []string{"hwprobe/amd.TestAPUMemoryIsCappedByTheHostButTheCarveOutIsNot", "scheduler.TestAPUHasMoreThanItsCarveOut"}},
	6: {"ollama#16462", "a total is taken for what is available", []string{"scheduler.TestTotalIsNotWhatIsAvailable"}},
	7: {"ROCm/legacy-rocm-build#6004", "carve-out and GTT are added up beyond what the machine has", []string{"scheduler.TestUnifiedMemoryIsCountedOnce"}},
	8: {"ollama#16667", "the integrated GPU is chosen and the card dropped", []string{"scheduler.TestDiscreteCardGoesBeforeIntegratedGPU"}},
	9: {"project-nomad#1092", "the integrated GPU is dropped without OLLAMA_IGPU_ENABLE", []string{"worker/serve.TestOllamaDropsTheIntegratedGPUWithoutAWord"}},
	10: {"ollama#8903, #9977, Aider#4687, paperless-ai#859", "clients' options differ, and each call reloads", []string{
		"scheduler.TestDifferingOptionsDoNotReloadOnEachCall", "coordinator/engine.TestStepsThatAskForOtherContextsCauseNoReload",
		"cmd/loopkeeper/residency.TestOtherContextsWithinARunForceNoReload"}},
	11: {"ollama#11997", "a larger context runs out of memory", []string{"scheduler.TestLargerContextIsAnotherFit"}},
	12: {"ollama#10948", "two models that are kept for ever evict each other", []string{"scheduler.TestTwoModelsDoNotThrash",
		"cmd/loopkeeper/residency.TestTwoModelsOnOneCardAreBatchedAndNotAlternated"}},
	13: {"llama-swap#612", "A B A A C in the order of arrival swaps each time", []string{"scheduler.TestASwapIsAmortisedHoweverFastLoadsAre", "scheduler.TestGenerateAndJudgeOnOneCardFlowInWaves",
		"cmd/loopkeeper/residency.TestRealModelsOnOneMachineAreBatchedAndNotAlternated"}},
	14: {"llama-swap#19", "a swap kills calls that run", []string{"scheduler.TestABusyModelIsNeverEvicted"}},
	15: {"llama-swap#946", "an unload for idleness meets a call", []string{"scheduler.TestAnIdleUnloadNeverMeetsACall"}},
	16: {"ollama#7779, #13234, #17428", "\"Stopping…\" for ever", []string{"scheduler.TestAModelThatDoesNotLeave", "cmd/loopkeeper/residency.TestAnUnloadHangsAndTheQueueMovesOn"}},
	17: {"ollama#11458, #9355, #5013", "keep_alive is ignored", []string{"cmd/loopkeeper/residency.TestKeepAliveIsIgnoredAndTheModelGoesAllTheSame"}},
	18: {"ollama#5464, #10053, #8426", "the GPU is lost after a suspend", []string{"coordinator/engine.TestSuspendLosesTheGPUAndOnlyTheRateTells",
		"cmd/loopkeeper/residency.TestTheGPUIsLostAndPSShowsNothing", "scheduler.TestAClockThatJumpedBreaksNothing", "hwprobe/probe.TestWatchLooksAtOnceAfterASuspension"}},
	19: {"ollama#11889, #2876", "a disconnect does not stop the prompt's processing", []string{"coordinator/engine.TestACancelledCallHoldsItsSlotUntilItsWorkerConfirms",
		"scheduler.TestACancelledCallKeepsItsSlot"}},
	20: {"ollama#11812", "after a spill the next model runs on the processor alone", []string{"scheduler.TestAfterASpillTheNextModelWaitsForTheMemory",
		"cmd/loopkeeper/residency.TestTheNextModelLoadsOntoTheProcessorAndIsPlacedAgain"}},
	21: {"ollama#17201, #5136, #16866", "graph and projector are not counted", []string{"scheduler.TestProjectorAndGraphTakeMemory"}},
	22: {"gpustack#6044", "memory of other programs is ignored", []string{"scheduler.TestForeignUseCounts", "cmd/loopkeeper/residency.TestAGameStartsJustBeforeALoad"}},
	23: {"gpustack#5513", "a ghost allocation stays after a partition", []string{"scheduler.TestNoGhostAllocationAfterAPartition",
		"coordinator/engine.TestNoGhostAllocationAfterAPartition"}},
	32: {"ollama#13227", "a model on the processor is evicted for a GPU's memory", []string{"scheduler.TestHostAndDeviceMemoryAreSeparate"}},
	33: {"ollama#13235", "memory runs out when models are loaded one after another", []string{"scheduler.TestLoadInFlightCountsBeforeItShows", "scheduler.TestOneLoadInFlightPerNode",
		"cmd/loopkeeper/residency.TestVRAMDoesNotRunOutLoadingOneAfterAnother"}},
}

// Each report that concerns fit or placement has its tests, and those are where the list says.
func TestEveryReportHasATest(t *testing.T) {
	there := map[string]bool{}
	for _, f := range sourceFiles(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				there[f.folder+"."+fn.Name.Name] = true
			}
		}
	}
	rows := slices.Sorted(maps.Keys(reported))
	for row := 1; row <= 23; row++ {
		if !slices.Contains(rows, row) {
			t.Errorf("row %d has no test", row)
		}
	}
	for _, row := range rows {
		r := reported[row]
		if len(r.tests) == 0 {
			t.Errorf("row %d, %s, has no test: %s", row, r.where, r.what)
		}
		for _, name := range r.tests {
			if !there[name] {
				t.Errorf("row %d, %s, %s: there is no test %s", row, r.where, r.what, name)
			}
		}
	}
}
