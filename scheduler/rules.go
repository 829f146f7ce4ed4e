package scheduler

import (
	"cmp"
	"strconv"
	"strings"
)

// Rules names the behaviour of a generation of Ollama that a fit has to respect.
type Rules string

// The rule sets.
const (
	RulesClassic Rules = "classic" // 0.2x and older: Ollama estimates layer by layer, as NeedFor does
	RulesRunner  Rules = "runner"  // 0.30 and newer: it evicts when its own prediction exceeds 80 % of free memory
)

// RuleSet (rule 3) is the rule set of an Ollama version such as "0.17.4". A version that cannot be read gets RulesRunner, because
// a fit under those is a fit under both.
func RuleSet(version string) Rules {
	return cmp.Or(knownRules(version), RulesRunner)
}

// knownRules is empty for a version that cannot be read.
func knownRules(version string) Rules {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errMajor := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	switch {
	case errMajor != nil || errMinor != nil || a == 0 && b <= 0:
		return ""
	case a == 0 && b < 30:
		return RulesClassic
	default:
		return RulesRunner
	}
}

// runnerShare is how much of the free memory Ollama 0.30 lets a model take beside others.
const runnerShare = 0.8

// predictRunner is what Ollama 0.30 takes a model for, in bytes: the file and an f16 cache, neither graph nor projector, and
// for a large batch that the Modelfile asks for a flat amount (PredictServerVRAM in llm, generationBatchSurcharge in server).
// A batch that Ollama chooses itself needs none: it takes a large one only where that leaves a quarter free.
func predictRunner(fileBytes uint64, s Shape, context, slots int) uint64 {
	head := float64(s.EmbeddingLength / max(s.Heads, 1))
	kv := 2 * float64(s.Layers) * s.kvHeadsLeast() * head * float64(context) * float64(slots) * 2
	surcharge := 0
	switch {
	case s.Pooling:
	case s.Batch >= 2048:
		surcharge = 2 << 30
	case s.Batch >= 1024:
		surcharge = 768 << 20
	}
	return toBytes(float64(max(fileBytes, s.WeightBytes)) + kv + float64(surcharge))
}
