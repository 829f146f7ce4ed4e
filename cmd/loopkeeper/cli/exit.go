package cli

import (
	"errors"
	"fmt"
	"strings"
)

// The exit codes: all of them, and nothing else ends the process.
const (
	exitOK          = 0
	exitError       = 1   // something went wrong that is no state of a run
	exitUsage       = 2   // the command line was not understood
	exitIncomplete  = 10  // the run ended, but part of the work is missing
	exitFailed      = 11  // the script threw
	exitTimedOut    = 12  // the run's time was used up
	exitCancelled   = 13  // somebody cancelled the run
	exitDiverged    = 14  // a replay did not do what was recorded
	exitExhausted   = 15  // tokens, calls or another limit were used up
	exitWaiting     = 16  // the run waits for a person
	exitInterrupted = 130 // Ctrl-C ended the watching; the run goes on
)

// exitHelp is the table above as every command's help shows it.
const exitHelp = `Exit codes: 0 completed, 1 error, 2 usage, 10 incomplete, 11 failed, 12 timed out, 13 cancelled, 14 diverged,
  15 exhausted, 16 waiting for a person, 130 watching ended by Ctrl-C while the run goes on`

var exitOfState = map[string]int{
	"completed": exitOK, "incomplete": exitIncomplete, "failed": exitFailed, "timed_out": exitTimedOut, "cancelled": exitCancelled,
	"diverged": exitDiverged, "exhausted": exitExhausted, "suspended": exitWaiting,
}

// exitWith ends the command with a code and no message: everything was said already.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ended is the outcome of a command that showed a run's end.
func ended(state string) error {
	if code := exitOfState[state]; code != exitOK {
		return exitWith(code)
	}
	return nil
}

// usageError is a command line that was not understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode is what the process ends with after err.
func exitCode(err error) int {
	var with exitWith
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &with):
		return int(with)
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), unknownCommand):
		return exitUsage
	default:
		return exitError
	}
}

// unknownCommand is how the command library begins the one usage error that passes no hook of ours.
const unknownCommand = "unknown command"
