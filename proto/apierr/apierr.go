// Package apierr is the one error type that crosses a process border or reaches a user. An Error has a stable code, a
// message that names what is wrong, and what to do next. Conversion to and from gRPC status happens only here.
package apierr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Code says what kind of error it is. Codes are part of the contract: they are never renamed.
type Code string

// The codes. Each maps to one gRPC code, see grpcCode.
const (
	// InvalidArgument: the request itself is wrong; sending it again unchanged cannot help.
	InvalidArgument Code = "invalid_argument"
	// NotFound: the named run, model, node, file or artifact does not exist.
	NotFound Code = "not_found"
	// Conflict: the request contradicts the present state, such as cancelling a run that has ended.
	Conflict Code = "conflict"
	// CannotFit: a model fits no known machine, even an empty one.
	CannotFit Code = "cannot_fit"
	// MissingArtifact: the receiver lacks a body that was sent by hash; Details lists the hashes.
	MissingArtifact Code = "missing_artifact"
	// Unavailable: the peer cannot be reached now; trying again later can help.
	Unavailable Code = "unavailable"
	// IncompatibleVersion: the two sides are more than one minor version apart.
	IncompatibleVersion Code = "incompatible_version"
	// LedgerCorrupt: the ledger or an artifact is not what was written.
	LedgerCorrupt Code = "ledger_corrupt"
	// LedgerTooNew: a newer loopkeeper wrote the ledger.
	LedgerTooNew Code = "ledger_too_new"
	// Cancelled: the caller or a user cancelled it.
	Cancelled Code = "cancelled"
	// Internal: a fault of loopkeeper itself.
	Internal Code = "internal"
)

// Error is an error with a code, a message and advice. The zero value is not useful; make one with New or Wrap.
type Error struct {
	Code    Code     // stable kind
	Message string   // what is wrong, naming file, line and field where there are any; one sentence, no trailing period needed
	Next    []string // what the user can do, most useful first; commands work when pasted
	Details []string // machine-readable extras, such as the hashes that MissingArtifact is about
	Cause   error    // the underlying error, not sent across processes beyond its text in Message
}

// New makes an Error from a format; wrap a cause with Wrap instead.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error that says what was being done when cause happened. The code of a wrapped *Error wins over code,
// and its advice is kept, so that adding context never hides what the user can do.
func Wrap(cause error, code Code, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
	var inner *Error
	if errors.As(cause, &inner) {
		e.Code, e.Next, e.Details = inner.Code, inner.Next, inner.Details
	}
	return e
}

// WithNext returns e with advice added.
func (e *Error) WithNext(next ...string) *Error {
	e.Next = append(e.Next, next...)
	return e
}

// Error returns message and cause, without the advice.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// As finds the *Error in err's chain; an error without one comes back as Internal with its own text.
// It returns nil for nil.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		if e == err {
			return e
		}
		return &Error{Code: e.Code, Message: err.Error(), Next: e.Next, Details: e.Details}
	}
	return &Error{Code: Internal, Message: err.Error()} // its text holds its causes already
}

// CodeOf returns err's code, Internal when it has none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return As(err).Code
}

const domain = "loopkeeper"

// ToStatus turns err into a gRPC status error that FromStatus restores on the other side.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok && !hasCode(err) {
		return err
	}
	e := As(err)
	st := status.New(grpcCode(e.Code), strings.ToValidUTF8(e.Error(), "\uFFFD"))
	info := &errdetails.ErrorInfo{Reason: string(e.Code), Domain: domain, Metadata: map[string]string{}}
	for i, n := range e.Next {
		info.Metadata[fmt.Sprintf("next%d", i)] = n
	}
	for i, d := range e.Details {
		info.Metadata[fmt.Sprintf("detail%d", i)] = d
	}
	if with, derr := st.WithDetails(info); derr == nil {
		st = with
	}
	return st.Err()
}

// FromStatus restores the *Error in a gRPC error. A plain gRPC error becomes an Error whose code follows from the
// gRPC code. It returns nil for nil.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	if hasCode(err) {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	e := &Error{Code: fromGRPC(st.Code()), Message: plain(st.Message()), Cause: nil}
	for _, d := range st.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok || info.Domain != domain {
			continue
		}
		e.Code = Code(info.Reason)
		e.Next = numbered(info.Metadata, "next")
		e.Details = numbered(info.Metadata, "detail")
	}
	return e
}

// dialled are the wrappings that gRPC puts around why a connection could not be made.
var dialled = regexp.MustCompile(`connection error: desc = "transport: (?:Error while dialing|authentication handshake failed): ?(.*?)"?$`)

// plain takes the library's words off a message that a person will read.
func plain(message string) string {
	if m := dialled.FindStringSubmatch(message); m != nil {
		return "no answer: " + m[1]
	}
	return message
}

func hasCode(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

func numbered(m map[string]string, prefix string) []string {
	var out []string
	for i := 0; ; i++ {
		v, ok := m[fmt.Sprintf("%s%d", prefix, i)]
		if !ok {
			return out
		}
		out = append(out, v)
	}
}

func grpcCode(c Code) codes.Code {
	switch c {
	case InvalidArgument:
		return codes.InvalidArgument
	case NotFound:
		return codes.NotFound
	case Conflict, CannotFit, IncompatibleVersion, MissingArtifact, LedgerTooNew:
		return codes.FailedPrecondition
	case Unavailable:
		return codes.Unavailable
	case LedgerCorrupt:
		return codes.DataLoss
	case Cancelled:
		return codes.Canceled
	default:
		return codes.Internal
	}
}

func fromGRPC(c codes.Code) Code {
	switch c {
	case codes.InvalidArgument, codes.OutOfRange:
		return InvalidArgument
	case codes.NotFound:
		return NotFound
	case codes.FailedPrecondition, codes.AlreadyExists, codes.Aborted:
		return Conflict
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return Unavailable
	case codes.Canceled:
		return Cancelled
	default:
		return Internal
	}
}
