package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns text in the one form that requests and inputs have: object keys sorted by UTF-16 code units, no
// white space, no duplicate keys, strings escaped as little as JSON allows (RFC 8785 in both), numbers as they were
// written. Numbers are not rewritten, because an integer beyond 2^53 has to stay exact.
//
// A text that is not UTF-8, or holds half of a character, is refused: it would come out as another text.
func Canonical(text []byte) (json.RawMessage, error) {
	out, err := canonical(text)
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(text):
		return nil, errors.New("not JSON: the text is not UTF-8")
	case loneSurrogate(text):
		return nil, errors.New("a text in it has half of a character (a lone surrogate), which no text can hold")
	default:
		return out, nil
	}
}

var errMore = errors.New("not JSON: more text after the value")

// canonical has U+FFFD where Canonical refuses.
func canonical(text []byte) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errMore
	}
	return appendCanonical(nil, value), nil
}

// loneSurrogate looks through valid JSON for an escape that is half of a pair: the decoder would put U+FFFD in its place.
func loneSurrogate(text []byte) bool {
	escape := func(i int) (unit rune, ok bool) {
		if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 16)
		return rune(n), err == nil
	}
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		unit, ok := escape(i)
		switch {
		case !ok:
			i++ // past the escaped character
		case !utf16.IsSurrogate(unit):
			i += 5
		default:
			low, _ := escape(i + 6)
			if utf16.DecodeRune(unit, low) == utf8.RuneError {
				return true
			}
			i += 11
		}
	}
	return false
}

func appendCanonical(out []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, v)
	case json.Number:
		return append(out, v...)
	case string:
		return appendString(out, v)
	case []any:
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, element)
		}
		return append(out, ']')
	case map[string]any:
		return appendObject(out, v)
	default:
		return out // the decoder makes no other types
	}
}

func appendObject(out []byte, object map[string]any) []byte {
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareUTF16)
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, key), ':')
		out = appendCanonical(out, object[key])
	}
	return append(out, '}')
}

// compareUTF16 orders as JavaScript does; it differs from byte order only where a character beyond U+FFFF meets one in
// U+E000..U+FFFF.
func compareUTF16(a, b string) int {
	if isASCII(a) && isASCII(b) {
		return strings.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

const hexDigits = "0123456789abcdef"

func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x20:
			out = append(out, c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\r':
			out = append(out, '\\', 'r')
		case c == '\t':
			out = append(out, '\\', 't')
		case c == '\b':
			out = append(out, '\\', 'b')
		case c == '\f':
			out = append(out, '\\', 'f')
		default:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(out, '"')
}
