package learn

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"
)

func called(s Speed, tokens int64, took time.Duration) Speed {
	return s.Called(Call{PromptTokens: 100, Prompt: time.Second, OutputTokens: tokens, Output: took, Service: took + time.Second})
}

// A 3090 that decodes an 8B at 111.7 tok/s stays known as such through one call that shared its card with a game.
func TestOneOddCallMovesNothing(t *testing.T) {
	s := Speed{}
	for range 9 {
		s = called(s, 1117, 10*time.Second)
	}
	s = called(s, 20, 10*time.Second)
	if got := s.Estimate(); math.Abs(got.Decode-111.7) > 0.1 || got.Service != 11*time.Second || got.Prompt != 100 {
		t.Errorf("%+v", got)
	}
}

// A machine that changes for good, such as by another card, is known by its new rate after as many calls as the window has room.
func TestEstimatesFollowAMachineThatChanges(t *testing.T) {
	s := Speed{}
	for range 50 {
		s = called(s, 1000, 10*time.Second)
	}
	for range windowSize/2 + 1 {
		s = called(s, 300, 10*time.Second)
	}
	if got := s.Estimate().Decode; got != 30 {
		t.Errorf("%v tokens per second", got)
	}
	if len(s.Decode) != windowSize {
		t.Errorf("%d samples are kept", len(s.Decode))
	}
}

// Ollama counts a cached prompt in full, in no time: 100,000 tokens per second are no rate of a machine.
func TestCachedPromptsDoNotMakeAMachineFast(t *testing.T) {
	s := Speed{}
	for i := range 20 {
		took := 2 * time.Second
		if i%3 > 0 {
			took = 20 * time.Millisecond
		}
		s = s.Called(Call{PromptTokens: 2000, Prompt: took})
	}
	if got := s.Estimate().Prompt; got != 1000 {
		t.Errorf("%v tokens per second", got)
	}
}

func TestWhatIsTooShortSaysNothing(t *testing.T) {
	s := Speed{}.Called(Call{PromptTokens: 3, Prompt: time.Nanosecond, OutputTokens: 2, Output: time.Nanosecond}).Loaded(time.Millisecond)
	if got := s.Estimate(); got.Prompt != 0 || got.Decode != 0 || got.Load != 0 || got.Service != 0 {
		t.Errorf("%+v", got)
	}
	if r := (Rate{}).Loaded(5<<30, time.Microsecond).Loaded(0, time.Minute); r.Estimate() != 0 {
		t.Errorf("%v bytes per second", r.Estimate())
	}
}

// ollama#10445: ps says that all is on the GPU, and the CPU computes.
func TestSlowIsLessThanHalfOfWhatIsKnown(t *testing.T) {
	s := Speed{}
	slow := Call{OutputTokens: 100, Output: 10 * time.Second} // 10 tok/s
	if s.Slow(slow, 1) {
		t.Error("slow without anything to compare with")
	}
	for range 3 {
		s = called(s, 1000, 10*time.Second) // 100 tok/s
	}
	for name, c := range map[string]struct {
		call Call
		busy int
		want bool
	}{
		"a tenth":                         {slow, 1, true},
		"half":                            {Call{OutputTokens: 500, Output: 10 * time.Second}, 1, false},
		"a quarter, four shared the card": {Call{OutputTokens: 250, Output: 10 * time.Second}, 4, false},
		"a tenth, two shared it":          {slow, 2, true},
		"too few tokens to tell":          {Call{OutputTokens: 3, Output: 10 * time.Second}, 1, false},
		"a stand-in that answers at once": {Call{OutputTokens: 100, Output: time.Microsecond}, 1, false},
	} {
		if got := s.Slow(c.call, c.busy); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSamplesSurviveTheLedger(t *testing.T) {
	s := called(called(Speed{}, 1117, 10*time.Second), 1003, 9*time.Second).Loaded(7123 * time.Millisecond)
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Speed
	if err := json.Unmarshal(raw, &back); err != nil || back.Estimate() != s.Estimate() {
		t.Errorf("%+v became %+v, %v", s, back, err)
	}
	if bad := (Window{}).add(math.NaN()).add(math.Inf(1)).add(-1); len(bad) != 0 {
		t.Errorf("%v", bad)
	}
	w := Window{1, 2}
	if w.add(3); !slices.Equal(w, Window{1, 2}) {
		t.Error("a window changed under its reader")
	}
}
