package ollamatest

import (
	"encoding/json"
	"net/http"
)

// lines writes an answer as Ollama does: one JSON object a line, or, without streaming, only the last one. An error
// before the first line has its own status; after it, it is a line inside the stream.
type lines struct {
	w      http.ResponseWriter
	stream bool
	wrote  bool
	last   any
}

func newLines(w http.ResponseWriter, stream bool) *lines { return &lines{w: w, stream: stream} }

// send streams v, or keeps it as the last object so far.
func (l *lines) send(v any) {
	if !l.stream {
		l.last = v
		return
	}
	if !l.wrote {
		l.w.Header().Set("Content-Type", "application/x-ndjson")
		l.wrote = true
	}
	json.NewEncoder(l.w).Encode(v) // fails only when the client is gone; its context tells
	if f, ok := l.w.(http.Flusher); ok {
		f.Flush()
	}
}

// flush ends an answer without streaming.
func (l *lines) flush() {
	if !l.stream && l.last != nil {
		writeJSON(l.w, http.StatusOK, l.last)
	}
}

func (l *lines) fail(status int, err error) {
	if l.wrote {
		l.send(map[string]string{"error": err.Error()})
		return
	}
	writeError(l.w, status, "%v", err)
}
