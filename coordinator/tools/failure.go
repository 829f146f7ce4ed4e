package tools

import (
	"errors"
	"fmt"
	"io/fs"
)

// The kinds of failure of a tool.
const (
	InvalidInput = "invalid_input"  // the call itself is wrong
	UnknownTool  = "unknown_tool"   // there is no such tool
	NotFound     = "not_found"      // what it is about does not exist
	NotAllowed   = "not_allowed"    // a workspace that is only read, or a permission of the system
	NotAFile     = "not_a_file"     // a folder, a link, a device
	TooLarge     = "too_large"      // beyond the limit of the workspace
	Conflict     = "conflict"       // the world is not what the call expects
	DiskFull     = "disk_full"      // there is no space left
	IOError      = "io_error"       // the disk or the system refused
	EffectUnsure = "unknown_effect" // it may have been done, and nobody can tell
)

// Failure is why a call did not succeed. It is an error, so that a tool returns it as one.
type Failure struct {
	Kind    string   `json:"kind"`
	Message string   `json:"message"`         // names the tool, and the field where there is one
	Next    []string `json:"next,omitempty"`  // what a user can do
	Again   bool     `json:"again,omitempty"` // another attempt may succeed unchanged
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

func failed(kind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func (f *Failure) next(advice ...string) *Failure {
	f.Next = append(f.Next, advice...)
	return f
}

func (f *Failure) again() *Failure {
	f.Again = true
	return f
}

// asFailure returns the Failure in err's chain.
func asFailure(err error) (*Failure, bool) {
	var f *Failure
	ok := errors.As(err, &f)
	return f, ok
}

// explain turns an error of the file system into a Failure that says what to do.
func explain(tool, doing, place string, err error) error {
	if _, ok := asFailure(err); ok || err == nil {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(NotFound, "%s: %s %s: it does not exist", tool, doing, place).next("file.list shows what is there")
	case errors.Is(err, fs.ErrPermission):
		return failed(NotAllowed, "%s: %s %s: permission denied", tool, doing, place).
			next("give the user that runs the coordinator the right to it, or choose another path")
	case diskFull(err):
		return failed(DiskFull, "%s: %s %s: no space left on the disk", tool, doing, place).
			next("free space on the disk of the workspace, then retry the run's failed steps").again()
	default:
		return failed(IOError, "%s: %s %s: %v", tool, doing, place, err).next("check the disk of the workspace, then retry").again()
	}
}
