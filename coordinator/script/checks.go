package script

import (
	"encoding/json"
	"slices"

	"github.com/dop251/goja"
)

// asked is a check that the script has been asked for.
type asked struct {
	pos, item int
	answer    *goja.Promise
}

// check has the script judge one value, as the question says. A check that only computes is answered in this yield; one that reads a text first,
// in the yield after that.
func (v *vm) check(d Delivery, question goja.Value) (Yield, error) {
	if d.Err != nil {
		failure := &Failure{Kind: FailureKind(d.Err.Kind), Message: d.Err.Message, File: v.source.Name}
		v.answered = append(v.answered, Checked{Pos: d.Pos, Item: d.Item, Failure: failure})
		return v.yield(), nil
	}
	value, err := v.call("check", question)
	if err != nil {
		return v.end(err), nil
	}
	promise, ok := value.Export().(*goja.Promise)
	if !ok {
		return v.end(&Failure{Kind: Crashed, Message: "the program's check function returned no promise"}), nil
	}
	v.checks = append(v.checks, &asked{pos: d.Pos, item: d.Item, answer: promise})
	return v.yield(), nil
}

// answerChecks moves the checks that are settled to the answers of the next yield.
func (v *vm) answerChecks() {
	v.checks = slices.DeleteFunc(v.checks, func(a *asked) bool {
		answer := Checked{Pos: a.pos, Item: a.item}
		switch state := a.answer.State(); {
		case state == goja.PromiseStateRejected:
			v.trackRejection(a.answer, goja.PromiseRejectionHandle)
			answer.Failure = v.rejected(a.answer)
		case state == goja.PromiseStateFulfilled:
			if err := json.Unmarshal([]byte(a.answer.Result().String()), &answer); err != nil {
				answer.Failure = &Failure{Kind: Crashed, Message: "the check's answer does not parse: " + err.Error()}
			}
		case v.stuck():
			answer.Failure = &Failure{Kind: Deadlock, File: v.source.Name, Message: "the check waits for something that can never happen"}
		default:
			return false
		}
		v.answered = append(v.answered, answer)
		return true
	})
}

// stuck says whether all that is under way waits for an answer of a check, so that nothing can settle one.
func (v *vm) stuck() bool {
	for pos := range v.pending {
		if !slices.ContainsFunc(v.checks, func(a *asked) bool { return a.pos == pos }) {
			return false
		}
	}
	return true
}
