package calls

import (
	"testing"
	"time"
)

// DESIGN §5: a stall is no first token beyond a multiple of the expected load and prompt time.
func TestFirstTokenIsAwaitedByLoadAndPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		pace        Pace
		size        int64
		promptBytes int
		want        time.Duration
	}{
		"loaded, short prompt":      {Pace{Loaded: true}, 5e9, 30, 4*time.Minute + 800*time.Millisecond},
		"to load, 25 s at 0.2 GB/s": {Pace{}, 5e9, 0, 4 * (60 + 25) * time.Second},
		"long prompt, 40 s":         {Pace{Loaded: true}, 5e9, 6000, 4 * (60 + 40) * time.Second},
		"both as measured":          {Pace{LoadRate: 1e9, PromptRate: 1000}, 5e9, 6000, 4 * (60 + 5 + 2) * time.Second},
		"a slow machine, measured":  {Pace{Loaded: true, PromptRate: 20}, 5e9, 6000, 4 * (60 + 100) * time.Second},
		"a large model":             {Pace{}, 400e9, 30, 15 * time.Minute},
		"beyond any duration":       {Pace{LoadRate: 1e-30}, 400e9, 1 << 40, 15 * time.Minute},
	} {
		if got := c.pace.firstToken(c.size, c.promptBytes); got.Round(time.Millisecond) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
