package script

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/dop251/goja"
)

// valuesSince is the interface version from which a program is given values; those before read JSON themselves.
const valuesSince = 3

// given is JSON as the program takes it, with every object in it. No text is null.
func (v *vm) given(text json.RawMessage) (goja.Value, []any, error) {
	if len(text) == 0 {
		text = json.RawMessage("null")
	}
	if v.version >= valuesSince {
		return v.border.read(text)
	}
	text, err := canonical(text)
	return v.js.ToValue(string(text)), nil, err
}

// delivered is a delivery as the library reads it: {pos, value, objects} with every object of the value, or {pos, err}; what a check is asked is
// {pos, item, value}, and about where the script does not have the item.
func (v *vm) delivered(d Delivery) (goja.Value, error) {
	if v.version < valuesSince {
		text, err := settled(d)
		return v.js.ToValue(text), err
	}
	if d.Err != nil {
		failure := v.border.object("kind", d.Err.Kind, "message", d.Err.Message, "step", d.Err.Step)
		return v.border.object("pos", d.Pos, "err", failure), nil
	}
	value, objects, err := v.given(d.Value)
	switch {
	case err != nil:
		return nil, err
	case d.Check && len(d.About) > 0:
		about, _, err := v.given(d.About)
		return v.border.object("pos", d.Pos, "item", d.Item, "value", value, "about", about), err
	case d.Check:
		return v.border.object("pos", d.Pos, "item", d.Item, "value", value), nil
	default:
		return v.border.object("pos", d.Pos, "value", value, "objects", v.js.NewArray(objects...)), nil
	}
}

// checkCall is what a check is asked, as a library that reads JSON has it.
type checkCall struct {
	Pos   int             `json:"pos"`
	Item  int             `json:"item"`
	Value json.RawMessage `json:"value"`
}

// settled is a delivery in the JSON that a library before valuesSince reads: {"pos":…,"value":…} or {"pos":…,"err":…}. Keys have the
// one order in which a script sees them.
func settled(d Delivery) (string, error) {
	if d.Err != nil && !d.Check {
		failure, err := marshal(d.Err)
		return fmt.Sprintf(`{"err":%s,"pos":%d}`, failure, d.Pos), err
	}
	var value json.RawMessage
	if len(d.Value) > 0 {
		var err error
		if value, err = canonical(d.Value); err != nil {
			return "", err
		}
	}
	if d.Check {
		text, err := marshal(checkCall{Pos: d.Pos, Item: d.Item, Value: value})
		return string(text), err
	}
	return fmt.Sprintf(`{"pos":%d,"value":%s}`, d.Pos, cmp.Or(string(value), "null")), nil
}
