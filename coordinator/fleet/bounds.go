package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// What a worker says is bounded before anything is computed from it: a worker may be of another version, broken, or not ours at all,
// and one number must not cost the others their decisions. The bounds are far beyond any machine.
const (
	mostBytes  = 1 << 50 // of a size: a pebibyte
	mostNumber = 1 << 30
	mostSlots  = 1024
	mostList   = 512     // entries, where mostOf says nothing else
	mostKeys   = 8192    // of attempts
	mostText   = 4 << 10 // bytes of a string
	mostRaw    = 8 << 20 // bytes of the hardware report
	mostFaults = 5       // that are told at once
)

// mostOf are the bounds of single fields, by name.
var mostOf = map[protoreflect.Name]int{"slots": mostSlots, "running": mostKeys, "kept": mostKeys, "models": 2048, "devices": 64, "pools": 64,
	"warnings": 64, "changes": 64, "capabilities": 64, "heartbeat_seconds": 3600, "layers": mostList}

// fault is a field whose value was beyond its bound.
type fault struct{ field, text string }

// bound puts all numbers, sizes, lists and texts of a message within their bounds, and says which were not. What may be absent is
// unknown then; a shape of which one number is wrong is unknown as a whole, because a need computed from it would be wrong, too.
func bound(m proto.Message) []fault {
	var faults []fault
	boundMessage(m.ProtoReflect(), "", &faults)
	return faults
}

func boundMessage(m protoreflect.Message, path string, faults *[]fault) {
	var fields []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		fields = append(fields, f)
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
	for _, f := range fields {
		at := strings.TrimPrefix(path+"."+string(f.Name()), ".")
		switch {
		case f.IsList():
			boundList(m.Mutable(f).List(), f, at, faults)
		case f.Message() != nil:
			before := len(*faults)
			if f.Message().ParentFile().Package() != "google.protobuf" {
				boundMessage(m.Mutable(f).Message(), at, faults)
			}
			if f.Message().Name() == "Shape" && len(*faults) > before {
				m.Clear(f)
			}
		default:
			if v, ok := boundValue(m.Get(f), f, at, faults); !ok && f.HasPresence() {
				m.Clear(f)
			} else if !ok {
				m.Set(f, v)
			}
		}
	}
}

func boundList(l protoreflect.List, f protoreflect.FieldDescriptor, at string, faults *[]fault) {
	most, given := mostList, mostOf[f.Name()]
	if given > 0 {
		most = given
	}
	if n := l.Len(); n > most {
		*faults = append(*faults, fault{at, fmt.Sprintf("%s has %d entries, of which %d are used", at, n, most)})
		l.Truncate(most)
	}
	for i := range l.Len() {
		if f.Message() != nil {
			boundMessage(l.Get(i).Message(), fmt.Sprintf("%s[%d]", at, i), faults)
		} else if v, ok := boundValue(l.Get(i), f, fmt.Sprintf("%s[%d]", at, i), faults); !ok {
			l.Set(i, v)
		}
	}
}

// boundValue returns the nearest value within the bounds, and whether that is the one that was given.
func boundValue(v protoreflect.Value, f protoreflect.FieldDescriptor, at string, faults *[]fault) (protoreflect.Value, bool) {
	most := int64(mostNumber)
	if given, ok := mostOf[f.Name()]; ok {
		most = int64(given)
	}
	wrong := func(format string, args ...any) {
		*faults = append(*faults, fault{at, at + " is " + fmt.Sprintf(format, args...)})
	}
	switch f.Kind() {
	case protoreflect.Int32Kind:
		if n := v.Int(); n < 0 || n > most {
			wrong("%d, which is taken for %d", n, min(max(n, 0), most))
			return protoreflect.ValueOfInt32(int32(min(max(n, 0), most))), false
		}
	case protoreflect.Uint64Kind:
		if n := v.Uint(); n > mostBytes {
			wrong("%d bytes, which no machine has", n)
			return protoreflect.ValueOfUint64(mostBytes), false
		}
	case protoreflect.DoubleKind:
		if x := v.Float(); math.IsNaN(x) || math.Abs(x) > mostNumber {
			wrong("%g", x)
			return protoreflect.ValueOfFloat64(0), false
		}
	case protoreflect.StringKind:
		if s := v.String(); len(s) > mostText {
			wrong("a text of %d bytes, of which %d are kept", len(s), mostText)
			return protoreflect.ValueOfString(strings.ToValidUTF8(s[:mostText], "")), false
		}
	case protoreflect.BytesKind:
		if n := len(v.Bytes()); n > mostRaw {
			wrong("%d bytes long, and left out", n)
			return protoreflect.ValueOfBytes(nil), false
		}
	}
	return v, true
}

// mostTold is how many fields of one node are told of in this life: whoever sends nonsense may send other nonsense every time.
const mostTold = 16

// bounded has a report say what of it was beyond its bounds, and returns what of that is to be told: each field once.
func (n *node) bounded(r *workerv1.NodeReport, faults []fault) (tell []string) {
	if r == nil || len(faults) == 0 {
		return nil
	}
	var texts []string
	for _, one := range faults {
		if len(texts) < mostFaults {
			texts = append(texts, one.text)
		}
		if !n.told[one.field] && len(n.told) < mostTold {
			if n.told == nil {
				n.told = map[string]bool{}
			}
			n.told[one.field] = true
			tell = append(tell, one.text)
		}
	}
	if more := len(faults) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	r.Warnings = append(r.Warnings, &workerv1.Warning{Code: "report_bounded", Text: "its report makes no sense: " + strings.Join(texts, "; "),
		Next: "install the same release of loopkeeper on both machines, and look at worker.slots and worker.hardware there"})
	return tell
}

// tell says what a node's report had that makes no sense.
func (f *Fleet) tell(id string, texts []string) {
	for _, text := range texts {
		if f.o.Note != nil { // whose part it is to log it, too
			f.o.Note(id, text)
		} else {
			f.o.Log.Warn("a report makes no sense: "+text, "node", id)
		}
	}
}
