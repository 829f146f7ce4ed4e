package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/ollama/ollama/fs/ggml"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// ReadGGUF reads the facts of a model from the header of a GGUF file, as a server that has it would tell them: names and
// digest apart. The tensors themselves need not be in the file, so the first megabytes of one are enough.
func ReadGGUF(path string) (Facts, error) {
	file, err := os.Open(path)
	if err != nil {
		return Facts{}, apierr.Wrap(err, apierr.NotFound, "open the model file").WithNext("name a GGUF file that can be read")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return Facts{}, apierr.New(apierr.InvalidArgument, "%s is not a regular file", path).WithNext("name a GGUF file")
	}
	f, err := DecodeGGUF(file, info.Size())
	if err != nil {
		return Facts{}, apierr.Wrap(err, apierr.InvalidArgument, "read the header of %s", path).
			WithNext("fetch the file again, or check that it is a model in GGUF format")
	}
	return f, nil
}

// DecodeGGUF does it for the first size bytes of a file. It trusts nothing in them: the header is walked with bounds before
// Ollama's own decoder reads it, because that allocates what a length says and turns as often as a count says.
func DecodeGGUF(r io.ReaderAt, size int64) (Facts, error) {
	header, err := scanHeader(r, size)
	if err != nil {
		return Facts{}, err
	}
	if header.parts > 1 {
		return Facts{}, fmt.Errorf("it is one of %d parts of a model, and tells the tensors of its own part only: merge them first", header.parts)
	}
	model, err := decode(&endless{r: r, size: size})
	if err != nil {
		return Facts{}, err
	}
	kv := model.KV()
	arch, ok := kv["general.architecture"].(string)
	if !ok || arch == "" {
		return Facts{}, errors.New("it names no architecture")
	}
	f := Facts{Name: kv.String("general.name"), Quantisation: kv.FileType().String()}
	f.readInfo(infoOf(kv, arch, header.vocabulary))
	if f.BlockCount == 0 {
		return Facts{}, fmt.Errorf("it describes no layers: a file of architecture %q is not a language model", arch)
	}
	f.Size = model.Length // with the tensors, whether they are there or not
	f.countWeights(tensorsOf(model.Tensors()))
	return f, nil
}

// maxList bounds the lists that are kept: those by layer are needed, the vocabulary only by its length.
const maxList = maxLayers

// decode is Ollama's decoder, whose panics on damaged input (alignment of zero, a null in a string of no length) are errors.
func decode(r io.ReadSeeker) (model *ggml.GGML, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			model, err = nil, fmt.Errorf("the header is damaged: %v", fault)
		}
	}()
	return ggml.Decode(r, maxList)
}

// infoOf makes of the keys of the architecture what a server's JSON would hold.
func infoOf(kv ggml.KV, arch string, vocabulary uint64) map[string]any {
	values := map[string]any{"general.architecture": arch}
	for key := range kv.Keys() {
		if !strings.HasPrefix(key, arch+".") {
			continue
		}
		var v any
		raw, err := json.Marshal(kv.Value(key))
		if err == nil && json.Unmarshal(raw, &v) == nil { // NaN has no JSON, and no key that is read holds one
			values[key] = v
		}
	}
	if values[arch+".vocab_size"] == nil && vocabulary > 0 {
		values[arch+".vocab_size"] = float64(vocabulary)
	}
	return values
}

func tensorsOf(list ggml.Tensors) []tensor {
	out := make([]tensor, len(list.Items()))
	for i, t := range list.Items() {
		out[i].name = t.Name
		out[i].bytes, out[i].known = sizeOf(t.Shape, ggml.TensorType(t.Kind))
	}
	return out
}

// endless reads a file whose end the decoder must not find: it checks that the tensors are inside, and a header alone is
// enough here.
type endless struct {
	r        io.ReaderAt
	size, at int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at >= e.size {
		return 0, io.EOF
	}
	n, err := e.r.ReadAt(p[:min(int64(len(p)), e.size-e.at)], e.at)
	e.at += int64(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

func (e *endless) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += e.at
	case io.SeekEnd:
		offset = math.MaxInt64
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	e.at = offset
	return offset, nil
}
