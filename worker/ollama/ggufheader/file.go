package ggufheader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Tensor is one tensor of a file. The first dimension is the one that lies together in memory.
type Tensor struct {
	Name string
	Dims []uint64
	Kind Kind
}

// Kind is the type of a tensor's elements, as ggml numbers them.
type Kind uint32

// The kinds that models here use.
const (
	F32  Kind = 0
	F16  Kind = 1
	Q8_0 Kind = 8
	Q4_K Kind = 12
	Q6_K Kind = 14
)

// blocks is bytes and elements of a block (ggml-common.h).
var blocks = map[Kind][2]uint64{F32: {4, 1}, F16: {2, 1}, Q8_0: {34, 32}, Q4_K: {144, 256}, Q6_K: {210, 256}}

// Bytes is the size of a tensor.
func (t Tensor) Bytes() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n / blocks[t.Kind][1] * blocks[t.Kind][0]
}

const alignment = 32

// Encode is the header of a file with these keys and tensors, and the size that the whole file has. Values are uint32,
// float32, bool, string, []int32, []uint32, []bool or []string.
func Encode(keys map[string]any, tensors []Tensor) (header []byte, size int64) {
	var w writer
	w.WriteString("GGUF")
	w.number(uint32(3), uint64(len(tensors)), uint64(len(keys)))
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w.text(key)
		w.value(keys[key])
	}
	offset := uint64(0)
	for _, t := range tensors {
		w.text(t.Name)
		w.number(uint32(len(t.Dims)), t.Dims, uint32(t.Kind), offset)
		offset += (t.Bytes() + alignment - 1) / alignment * alignment
	}
	w.Write(make([]byte, (alignment-w.Len()%alignment)%alignment))
	return w.Bytes(), int64(w.Len()) + int64(offset)
}

// Write writes the model's file into a folder of the test's own and returns its path.
func Write(t testing.TB, m Model) string {
	t.Helper()
	header, size := Encode(m.Keys(), m.Tensors())
	path := filepath.Join(t.TempDir(), "model.gguf")
	err := os.WriteFile(path, header, 0o600)
	if err == nil {
		err = os.Truncate(path, size) // a hole
	}
	if err != nil {
		t.Fatalf("write the header of %s: %v", m.Name, err)
	}
	return path
}

// writer appends the parts of a header to a buffer, where writing cannot fail.
type writer struct{ bytes.Buffer }

func (w *writer) number(values ...any) {
	for _, v := range values {
		_ = binary.Write(w, binary.LittleEndian, v)
	}
}

func (w *writer) text(s string) {
	w.Write(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(len(s))))
	w.WriteString(s)
}

func (w *writer) value(value any) {
	switch v := value.(type) {
	case uint32:
		w.number(uint32(4), v)
	case float32:
		w.number(uint32(6), v)
	case bool:
		w.number(uint32(7), v)
	case string:
		w.number(uint32(8))
		w.text(v)
	case []uint32:
		w.number(uint32(9), uint32(4), uint64(len(v)), v)
	case []int32:
		w.number(uint32(9), uint32(5), uint64(len(v)), v)
	case []bool:
		w.number(uint32(9), uint32(7), uint64(len(v)), v)
	case []string:
		w.number(uint32(9), uint32(8), uint64(len(v)))
		for _, s := range v {
			w.text(s)
		}
	default:
		panic(fmt.Sprintf("ggufheader: no value of type %T", value)) // a slip in a test's own table
	}
}
