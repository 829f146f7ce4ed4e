package params

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// isRef accepts {"ref": sha256, …} and what is no object, which the type says something about.
func isRef(v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if sha, _ := object["ref"].(string); !IsDigest(sha) {
		return errors.New("`ref` must be the SHA-256 of an uploaded text")
	}
	return nil
}

// IsDigest says whether a text is a SHA-256 in hex.
func IsDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// Ref is a reference to a body within an input.
type Ref struct {
	At     string // JSON pointer
	SHA256 string
	Name   string
	Bytes  float64 // as the reference says, -1 when it does not
}

// Refs lists every reference to a body in a decoded document, in the order of its JSON pointers.
func Refs(v any) []Ref {
	var out []Ref
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			if sha, ok := v["ref"].(string); ok && IsDigest(sha) {
				name, _ := v["name"].(string)
				bytes, known := v["bytes"].(float64)
				if !known {
					bytes = -1
				}
				out = append(out, Ref{pointer(path), sha, name, bytes})
				return
			}
			for key, x := range v {
				walk(x, append(path[:len(path):len(path)], key))
			}
		case []any:
			for i, x := range v {
				walk(x, append(path[:len(path):len(path)], fmt.Sprint(i)))
			}
		}
	}
	walk(v, nil)
	sort.Slice(out, func(a, b int) bool { return out[a].At < out[b].At })
	return out
}
