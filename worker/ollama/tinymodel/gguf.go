package tinymodel

import (
	"bytes"
	"encoding/binary"
)

// The GGUF container, version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): a header, typed key-value
// pairs, the tensors' descriptions, and the tensors' data, all little-endian, the data aligned to 32 bytes.
const (
	ggufVersion   = 3
	ggufAlignment = 32

	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufBool    = 7
	ggufString  = 8
	ggufArray   = 9

	ggmlF32 = 0 // the tensor type: plain 32-bit floats
)

// pair is a key with a value of one of the Go types that ggufWriter.value knows.
type pair struct {
	key   string
	value any
}

// tensor is a matrix of 32-bit floats. The first dimension is the one that lies together in memory.
type tensor struct {
	name string
	dims []uint64
	data []float32
}

// ggufWriter appends the parts of a file to a buffer, where writing cannot fail.
type ggufWriter struct{ bytes.Buffer }

// encodeGGUF returns a whole GGUF file.
func encodeGGUF(pairs []pair, tensors []tensor) []byte {
	var w ggufWriter
	w.WriteString("GGUF")
	w.number(uint32(ggufVersion))
	w.number(uint64(len(tensors)))
	w.number(uint64(len(pairs)))
	for _, p := range pairs {
		w.text(p.key)
		w.value(p.value)
	}
	w.descriptions(tensors)
	w.align()
	for _, t := range tensors {
		w.number(t.data)
		w.align()
	}
	return w.Bytes()
}

// descriptions lists the tensors with the place of each in the data that follows.
func (w *ggufWriter) descriptions(tensors []tensor) {
	offset := uint64(0)
	for _, t := range tensors {
		w.text(t.name)
		w.number(uint32(len(t.dims)))
		w.number(t.dims)
		w.number(uint32(ggmlF32))
		w.number(offset)
		size := uint64(len(t.data)) * 4
		offset += (size + ggufAlignment - 1) / ggufAlignment * ggufAlignment
	}
}

// value writes the type of a value and the value.
func (w *ggufWriter) value(value any) {
	switch v := value.(type) {
	case string:
		w.number(uint32(ggufString))
		w.text(v)
	case bool:
		w.number(uint32(ggufBool))
		w.number(v)
	case uint32:
		w.number(uint32(ggufUint32))
		w.number(v)
	case float32:
		w.number(uint32(ggufFloat32))
		w.number(v)
	case []string:
		w.array(ggufString, len(v))
		for _, s := range v {
			w.text(s)
		}
	case []int32:
		w.array(ggufInt32, len(v))
		w.number(v)
	}
}

func (w *ggufWriter) array(elementType uint32, length int) {
	w.number(uint32(ggufArray))
	w.number(elementType)
	w.number(uint64(length))
}

func (w *ggufWriter) text(s string) {
	w.number(uint64(len(s)))
	w.WriteString(s)
}

// number writes a fixed-size value or a slice of them. The error is that of a type without a fixed size, or of the
// buffer; neither occurs here.
func (w *ggufWriter) number(v any) { _ = binary.Write(&w.Buffer, binary.LittleEndian, v) }

func (w *ggufWriter) align() {
	for w.Len()%ggufAlignment != 0 {
		w.WriteByte(0)
	}
}
