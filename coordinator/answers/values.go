package answers

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// each visits v and what it holds, a container before its parts; yes goes into the parts.
func each(v any, path string, visit func(path string, v any) (yes bool)) {
	if !visit(path, v) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			each(v[name], join(path, name), visit)
		}
	case []any:
		for i, x := range v {
			each(x, join(path, fmt.Sprint(i)), visit)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func decode(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// refOf is the hash and the name of a reference, "" for what is none.
func refOf(v any) (sha, name string) {
	fields, ok := v.(map[string]any)
	if !ok {
		return "", ""
	}
	if sha, _ = fields["ref"].(string); len(sha) != 64 {
		return "", ""
	}
	name, _ = fields["name"].(string)
	return sha, name
}

// digestOf tells values apart that are long enough to mean something.
func digestOf(v any) (d [32]byte, ok bool) {
	switch v := v.(type) {
	case string:
		ok = len(v) >= least
	case map[string]any, []any:
		ok = true
	}
	if !ok {
		return d, false
	}
	text, err := json.Marshal(v) // sorts keys
	if err != nil || len(text) < least {
		return d, false
	}
	return sha256.Sum256(text), true
}
