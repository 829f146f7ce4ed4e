package ollamatest

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	var req api.EmbedRequest
	if !decode(w, r, &req) {
		return
	}
	texts, err := inputs(req.Input)
	if err != nil {
		writeError(w, http.StatusBadRequest, "%v", err)
		return
	}
	m, ok := s.find(req.Model)
	if !ok {
		writeError(w, http.StatusNotFound, "model '%s' not found", req.Model)
		return
	}
	g := &generation{endpoint: "embed", model: m, prompt: strings.Join(texts, "\n"), options: req.Options, started: time.Now()}
	entry := Call{Endpoint: "embed", Model: m.Name, Options: req.Options}
	var fault Fault
	if len(texts) > 0 {
		entry.Prompt, entry.Key = g.prompt, g.key()
		fault, entry.Repetition = s.dice.roll(freeCall, m.Name, g.prompt, entry.Key)
		entry.Fault = fault.Kind
	}
	n := s.calls.begin(entry)
	status, reason := 499, ""
	defer func() { s.calls.end(n, status, reason) }()
	resp, err := s.embedAll(r.Context(), g, req, texts, fault)
	if status = statusOf(err); err != nil {
		writeError(w, status, "%v", err)
		return
	}
	reason = "stop"
	if len(texts) == 0 {
		reason = "load"
	}
	writeJSON(w, http.StatusOK, resp)
}

// inputs reads the input field, which is a string, a list of strings or nothing.
func inputs(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		if v == "" {
			return nil, nil
		}
		return []string{v}, nil
	case []any:
		var out []string
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, errors.New("invalid input type")
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, errors.New("invalid input type")
}

// embedAll loads the model and makes the vectors. Faults of content do not apply to vectors.
func (s *Server) embedAll(ctx context.Context, g *generation, req api.EmbedRequest, texts []string, fault Fault) (*api.EmbedResponse, error) {
	_, n, err := s.need(g.model, req.Options, req.KeepAlive)
	if err != nil {
		return nil, err
	}
	if fault.Kind == HTTP503 {
		return nil, errMaxQueue
	}
	r, release, err := s.sched.acquire(ctx, n)
	if err != nil {
		return nil, err
	}
	defer release()
	resp := &api.EmbedResponse{Model: req.Model, Embeddings: [][]float32{}, LoadDuration: atLeast(time.Since(g.started))}
	if len(texts) == 0 {
		return resp, nil
	}
	if err := s.strike(ctx, g, fault); err != nil {
		return nil, err
	}
	dimensions := g.model.Embedding
	if req.Dimensions > 0 {
		dimensions = min(dimensions, req.Dimensions)
	}
	for _, text := range texts {
		size := len(tokens(text))
		if size > r.context {
			if !truthy(req.Truncate) {
				return nil, refuse(http.StatusBadRequest, "the input length exceeds the context length")
			}
			size = r.context
		}
		resp.PromptEvalCount += size
		resp.Embeddings = append(resp.Embeddings, vector(text, dimensions))
	}
	if err := sleep(ctx, forTokens(resp.PromptEvalCount, s.promptRate(g.model), r.slowdown)); err != nil {
		return nil, err
	}
	resp.TotalDuration = atLeast(time.Since(g.started))
	return resp, nil
}

// vector hashes words into dimensions and scales to length 1, so that texts with the same words are near each other.
func vector(text string, dimensions int) []float32 {
	sums := make([]float64, dimensions)
	for _, word := range append(strings.Fields(strings.ToLower(text)), "") {
		h := fnv.New64a()
		h.Write([]byte(word))
		x := h.Sum64()
		sums[x%uint64(dimensions)] += 1 - 2*float64(x>>63)
	}
	length := 0.0
	for _, v := range sums {
		length += v * v
	}
	if length == 0 { // the words cancelled each other
		sums[0], length = 1, 1
	}
	out := make([]float32, dimensions)
	for i, v := range sums {
		out[i] = float32(v / math.Sqrt(length))
	}
	return out
}
