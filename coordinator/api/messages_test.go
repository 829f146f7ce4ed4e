package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/pull"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// fill gives every field a value that is not zero, each number and text another one.
func fill(v reflect.Value, n *int) {
	*n++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(int64(*n), 0)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		if v.CanUint() {
			v.SetUint(uint64(*n))
		} else {
			v.SetInt(int64(*n))
		}
	}
}

func filled[T any]() T {
	var v T
	n := 0
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

// absent lists the fields of a message, and of those within it, that have no value.
func absent(m protoreflect.Message, path string) (out []string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := path + "." + string(f.Name())
		switch {
		case !m.Has(f):
			out = append(out, name)
		case f.IsList() && f.Message() != nil:
			out = append(out, absent(m.Get(f).List().Get(0).Message(), name)...)
		case f.Message() != nil && f.Message().FullName() != "google.protobuf.Timestamp":
			out = append(out, absent(m.Get(f).Message(), name)...)
		}
	}
	return out
}

// judgedView has an evaluation among its steps, whose verdict is read.
func judgedView() engine.View {
	v := filled[engine.View]()
	v.Steps[0].Verdict = json.RawMessage(`{"verdict":"sent_back","rule":"code_failed"}`)
	return v
}

// Whatever the contract has room for and the engine knows must arrive.
func TestEveryFieldOfAViewArrives(t *testing.T) {
	for _, m := range []proto.Message{runMessage(judgedView()), itemMessage(filled[engine.ItemView]()), outputMessage(filled[engine.Output]()),
		traceMessage(filled[ledger.Event]()), decision("r1", filled[engine.Explanation]()),
		poolMessage(filled[scheduler.PoolFit]()), fitMessage(filled[scheduler.NodeFit]()), pullMessage("m", filled[pull.Progress]())} {
		for _, name := range absent(m.ProtoReflect(), string(m.ProtoReflect().Descriptor().Name())) {
			switch name {
			case "Explanation.need", "Explanation.note", "Explanation.attempt": // of the model or the attempt, not of the explanation
			default:
				t.Errorf("%s has no value", name)
			}
		}
	}
}

// A time that is not known stays away: 1970 is none.
func TestUnknownTimesAreAbsent(t *testing.T) {
	m := runMessage(engine.View{})
	if m.GetStarted() != nil || m.GetEnded() != nil || m.GetCreated() != nil {
		t.Errorf("the run is %v", m)
	}
}
