package ollamatest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"
)

// FaultKind names one way in which a call goes wrong.
type FaultKind string

// The kinds of faults.
const (
	EmptyTurn       FaultKind = "empty_turn"                // white space only, done_reason stop
	ThinkingOnly    FaultKind = "thinking_only"             // thoughts, then no content
	TextForValue    FaultKind = "text_instead_of_structure" // prose although the call has a format; others are left alone
	MisplacedValue  FaultKind = "json_in_thinking"          // the value comes as thinking; calls without format are left alone
	RepeatAbort     FaultKind = "repeat_abort"              // status 200 and no done: the server drops an answer with 31 equal tokens in a row
	SilentCut       FaultKind = "silent_truncation"         // a prompt beyond the context is cut, whatever the request says
	SchemaViolation FaultKind = "schema_violation"          // JSON that the schema refuses; calls without format are left alone
	Rejected        FaultKind = "rejected"                  // a verdict that does not pass; calls without format are left alone
	Truncated       FaultKind = "truncated"                 // half of the answer, done_reason length
	StreamBroken    FaultKind = "stream_broken"             // status 200, half of the answer, no done
	ConnectionReset FaultKind = "connection_reset"          // the connection breaks in the middle of the answer
	HTTP500         FaultKind = "http_500"                  // the runner died
	HTTP503         FaultKind = "http_503"                  // the queue is full
	OutOfMemory     FaultKind = "out_of_memory"             // 500; the model is gone, from 0.30 on all models
	Slow            FaultKind = "slow"                      // the right answer, Delay later
	Hang            FaultKind = "hang"                      // no answer until the client gives up
	GPULost         FaultKind = "gpu_lost"                  // decoding at the speed of the host while /api/ps shows no spill
	StuckUnload     FaultKind = "stuck_unload"              // an unload is answered, but the model stays
	HungUnload      FaultKind = "hung_unload"               // an unload gets no answer until the client gives up, and the model stays
	PSMisreport     FaultKind = "ps_misreport"              // /api/ps shows a fraction of the memory that is taken
	CPULoad         FaultKind = "cpu_load"                  // a load ends on the processor, although the device has room
	KeepAliveLost   FaultKind = "keep_alive_lost"           // a request's keep_alive is ignored, and the server's own holds
)

var faultKinds = []FaultKind{EmptyTurn, ThinkingOnly, TextForValue, MisplacedValue, RepeatAbort, SilentCut, SchemaViolation, Rejected, Truncated, StreamBroken,
	ConnectionReset, HTTP500, HTTP503, OutOfMemory, Slow, Hang, GPULost, StuckUnload, HungUnload, PSMisreport, CPULoad, KeepAliveLost}

// occasion is what a fault can strike.
type occasion int

const (
	freeCall  occasion = iota // a call for text or vectors
	valueCall                 // a call with a format
	unloading
	reporting // one model in /api/ps
	loading
	keeping // a request with a keep_alive that is no unload
)

// strikes says on which occasions a kind can occur.
func (k FaultKind) strikes(o occasion) bool {
	switch k {
	case StuckUnload, HungUnload:
		return o == unloading
	case CPULoad:
		return o == loading
	case KeepAliveLost:
		return o == keeping
	case PSMisreport:
		return o == reporting
	case TextForValue, MisplacedValue, SchemaViolation, Rejected:
		return o == valueCall
	}
	return o == freeCall || o == valueCall
}

// Fault makes a share of the calls, or of the loads, unloads and reports, go wrong. At most one fault strikes a call; the probabilities of those that apply
// add up. Which calls are struck depends on the server's seed, the content of the request and how often the same
// request came before, never on the order of concurrent calls, unless Limit is set.
type Fault struct {
	Kind        FaultKind     `yaml:"kind" json:"kind"`
	Probability float64       `yaml:"probability" json:"probability"`     // 0 to 1
	Model       string        `yaml:"model" json:"model,omitempty"`       // only calls for this model
	Contains    string        `yaml:"contains" json:"contains,omitempty"` // only prompts with this text
	Limit       int           `yaml:"limit" json:"limit,omitempty"`       // at most so many strikes; 0 = without limit
	Delay       time.Duration `yaml:"delay" json:"delay,omitempty"`       // for slow; nanoseconds in JSON
}

func checkFaults(faults []Fault) error {
	sum := 0.0
	for i, f := range faults {
		if !slices.Contains(faultKinds, f.Kind) {
			return wrong(fmt.Sprintf("faults[%d].kind", i), "%q is unknown; there are %v", f.Kind, faultKinds)
		}
		if !(f.Probability >= 0 && f.Probability <= 1) {
			return wrong(fmt.Sprintf("faults[%d].probability", i), "must be between 0 and 1")
		}
		if f.Limit < 0 || f.Delay < 0 {
			return wrong(fmt.Sprintf("faults[%d]", i), "limit and delay must not be negative")
		}
		if f.Model == "" && f.Contains == "" && f.Limit == 0 && f.Kind.strikes(valueCall) {
			sum += f.Probability
		}
	}
	if sum > 1+1e-9 {
		return wrong("faults", "the probabilities of faults for every call add up to %g, more than 1", sum)
	}
	return nil
}

// dice decides which calls are struck. It keeps how often each request was seen.
type dice struct {
	mu     sync.Mutex
	seed   uint64
	faults []Fault
	struck []int          // strikes per fault
	seen   map[string]int // content key of a request → times seen
}

func newDice(seed uint64, faults []Fault) *dice {
	d := &dice{}
	d.reset(seed, faults)
	return d
}

func (d *dice) reset(seed uint64, faults []Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seed, d.faults, d.struck, d.seen = seed, slices.Clone(faults), make([]int, len(faults)), map[string]int{}
}

// roll returns the fault on one occasion, the zero Fault for none, and the number of times that the same key came before.
func (d *dice) roll(o occasion, model, prompt, key string) (Fault, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	nth := d.seen[key]
	d.seen[key]++
	u := uniform(d.seed, key, nth)
	for i, f := range d.faults {
		if !f.Kind.strikes(o) || !f.aimedAt(model, prompt) || f.Limit > 0 && d.struck[i] >= f.Limit {
			continue
		}
		if u < f.Probability {
			d.struck[i]++
			return f, nth
		}
		u -= f.Probability
	}
	return Fault{}, nth
}

// ProbePrompt is what a worker says that looks for the way on which a server applies a format.
const ProbePrompt = "Fill in the form. Write nothing else and no spaces."

// aimedAt leaves the probes of workers alone unless it is meant for them: they come when nobody has asked for anything, and
// would use up what was meant for the first call.
func (f Fault) aimedAt(model, prompt string) bool {
	if prompt == ProbePrompt && f.Contains == "" {
		return false
	}
	return (f.Model == "" || tagged(f.Model) == model) && strings.Contains(prompt, f.Contains)
}

// uniform maps its arguments to [0, 1).
func uniform(seed uint64, key string, nth int) float64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(nth))
	h.Write(b[:])
	h.Write([]byte(key))
	x := h.Sum64() // FNV leaves the high bits weak; the finaliser of SplitMix64 spreads them
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
