package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ollama/ollama/api"
)

// Kind says what went wrong between us and the server, as far as code can act on it.
type Kind string

// The kinds of Error.
const (
	// ModelMissing: the server does not have the model (404), or only as a remote model, which is never used.
	ModelMissing Kind = "model_missing"
	// InputTooLong: the prompt does not fit into num_ctx; every request refuses truncation.
	InputTooLong Kind = "input_too_long"
	// OutOfMemory: the model could not be loaded, or its runner ran out of memory.
	OutOfMemory Kind = "out_of_memory"
	// Unreachable: no answer from the server at all: refused, reset, unknown host.
	Unreachable Kind = "ollama_unreachable"
	// StreamBroken: the answer ended without a line that says done.
	StreamBroken Kind = "stream_broken"
	// Busy: the server's own queue is full (503).
	Busy Kind = "busy"
	// ServerError: any other failure on the server's side, such as a runner that died (5xx).
	ServerError Kind = "server_error"
	// BadRequest: the server refuses the request itself (other 4xx), such as thinking on a model that cannot.
	BadRequest Kind = "bad_request"
)

// Error is a failed exchange with the server. A context that ended is never an Error: such calls return an error that
// matches context.Canceled, context.DeadlineExceeded or the context's own cause.
type Error struct {
	Kind    Kind   // what code may branch on
	Op      string // what was asked, such as "generate with qwen3:8b"
	Status  int    // HTTP status; 0 when there was none
	Message string // the server's own words, or the transport's
	Cause   error  // the underlying error; may be nil

	// Resources: the server says that a lack of resources may be the reason. While a model is loaded it is; in the middle
	// of an answer the same words follow when a grammar kills the runner.
	Resources bool
}

// Error names what was asked and what came back.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s: ollama answered %d: %s", e.Op, e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Op, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf returns the kind of the Error in err's chain, "" when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// classify turns whatever the api package returned into an Error; nil stays nil. It is the only place that looks at
// the text of an error: Ollama tells several failures apart by their words alone.
func classify(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	e := &Error{Op: op, Message: err.Error(), Cause: err}
	var status api.StatusError
	var auth api.AuthorizationError
	var transport interface{ Timeout() bool } // *url.Error, *net.OpError
	switch {
	case errors.As(err, &status):
		e.Status, e.Message = status.StatusCode, firstNonEmpty(status.ErrorMessage, status.Status, err.Error())
		e.Kind = kindOf(e.Status, e.Message)
	case errors.As(err, &auth):
		e.Status, e.Kind = auth.StatusCode, BadRequest
	case errors.As(err, &transport), errors.Is(err, io.ErrUnexpectedEOF):
		e.Kind = Unreachable
	default: // an error line inside a stream that began with status 200
		e.Kind = kindOf(http.StatusInternalServerError, e.Message)
	}
	e.Resources = namesResources(e.Message)
	return e
}

// loading settles what an error of a load means, see Error.Resources; nil stays nil.
func loading(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Kind == ServerError && e.Resources {
		e.Kind = OutOfMemory
	}
	return err
}

// LackedResources says whether the server named a lack of resources as possible, see Error.Resources.
func LackedResources(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Resources
}

// namesResources is about Ollama's text for a runner that died: "model runner has unexpectedly stopped, this may be due
// to resource limitations or an internal error".
func namesResources(message string) bool {
	return strings.Contains(strings.ToLower(message), "resource limitations")
}

// kindOf reads status and text. The texts are those of Ollama 0.17.4: llm/server.go, llm/status.go, ml/device.go,
// runner/*/runner.go, and what CUDA, HIP and Metal print.
func kindOf(status int, message string) Kind {
	text := strings.ToLower(message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusServiceUnavailable:
		return Busy
	case has("input length exceeds", "exceeds maximum context length", "exceeds the context length",
		"exceeds the available context size", "exceed_context_size"):
		return InputTooLong
	case has("more system memory", "out of memory", "insufficient memory", "cudamalloc failed", "unable to allocate",
		"failed to allocate", "erroroutofdevicememory"):
		return OutOfMemory
	case status == http.StatusNotFound, has("manifest: file does not exist"): // the second is a pull's
		return ModelMissing
	case status >= 400 && status < 500:
		return BadRequest
	default:
		return ServerError
	}
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
