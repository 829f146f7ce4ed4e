package ollamatest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ParseConfig reads the YAML of a configuration. Unknown and repeated keys, wrong types and values that make no sense
// are errors that name file, line and key; file is only used for that.
func ParseConfig(file string, data []byte) (Config, error) {
	var c Config
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(&c); err != nil {
		if len(bytes.TrimSpace(data)) == 0 {
			return c, nil
		}
		return Config{}, fmt.Errorf("%s:%s", file, yaml.FormatError(err, false, true))
	}
	if _, err := c.complete(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", locate(file, data, err), err)
	}
	return c, nil
}

// keyError is a value that makes no sense, and where it stands, such as faults[0].kind.
type keyError struct{ key, text string }

func (e *keyError) Error() string { return e.key + ": " + e.text }

func wrong(key, format string, args ...any) error {
	return &keyError{key, fmt.Sprintf(format, args...)}
}

// locate adds to the file the line of the key that err is about, or of what encloses a key that is not there.
func locate(file string, data []byte, err error) string {
	var ke *keyError
	doc, perr := parser.ParseBytes(data, 0)
	if !errors.As(err, &ke) || perr != nil {
		return file
	}
	for key := ke.key; key != ""; key = key[:max(strings.LastIndexAny(key, ".["), 0)] {
		path, perr := yaml.PathString("$." + key)
		if perr != nil {
			continue
		}
		if node, ferr := path.FilterFile(doc); ferr == nil && node != nil {
			return fmt.Sprintf("%s:%d", file, node.GetToken().Position.Line)
		}
	}
	return file
}

// Bytes is a number of bytes; as text it takes the units KiB, MiB, GiB, TiB and KB, MB, GB, TB.
type Bytes int64

var byteUnits = []struct {
	suffix string
	factor float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// ParseBytes reads a size such as "8GiB", "500 MB" or "1024".
func ParseBytes(s string) (Bytes, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v >= 0) || v*u.factor >= 1<<62 {
			break
		}
		return Bytes(v * u.factor), nil
	}
	return 0, fmt.Errorf("%q is not a size; write it like 8GiB or 500MB", s)
}

// MarshalText writes the size in the largest unit that leaves a whole number.
func (b Bytes) MarshalText() ([]byte, error) {
	for _, u := range []int{3, 2, 1, 0} { // TiB, GiB, MiB, KiB
		unit := byteUnits[u]
		if n := Bytes(unit.factor); b >= n && b%n == 0 {
			return fmt.Appendf(nil, "%d%s", b/n, [...]string{"KiB", "MiB", "GiB", "TiB"}[u]), nil
		}
	}
	return fmt.Appendf(nil, "%d", b), nil
}

// UnmarshalText reads what ParseBytes reads.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBytes(string(text))
	return err
}

// UnmarshalYAML reads what ParseBytes reads; its error knows the line.
func (b *Bytes) UnmarshalYAML(node ast.Node) error {
	if err := b.UnmarshalText([]byte(node.GetToken().Value)); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	return nil
}
