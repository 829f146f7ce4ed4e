package hwprobe

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Optional is a value that the machine may not tell. The zero value is unknown, which is different from a known zero,
// and is JSON null. Optionals compare with ==.
type Optional[T uint64 | float64 | bool] struct {
	value T
	known bool
}

// Bytes is a memory size in bytes, or unknown.
type Bytes = Optional[uint64]

// Number is a measured quantity, or unknown; the field that holds it names the unit.
type Number = Optional[float64]

// Flag is yes, no or unknown.
type Flag = Optional[bool]

// Known makes a known value.
func Known[T uint64 | float64 | bool](value T) Optional[T] {
	return Optional[T]{value: value, known: true}
}

// Value returns the value and whether it is known; the value is the type's zero when it is not.
func (o Optional[T]) Value() (value T, known bool) { return o.value, o.known }

// Or returns the value, or fallback when it is unknown.
func (o Optional[T]) Or(fallback T) T {
	if o.known {
		return o.value
	}
	return fallback
}

// String prints the value, or "unknown".
func (o Optional[T]) String() string {
	if !o.known {
		return "unknown"
	}
	return fmt.Sprint(o.value)
}

// MarshalJSON writes null for unknown.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.known {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads null as unknown; a missing field stays unknown too.
func (o *Optional[T]) UnmarshalJSON(text []byte) error {
	*o = Optional[T]{}
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(text, &o.value); err != nil {
		return err
	}
	o.known = true
	return nil
}
