package cli

import (
	"errors"
	"fmt"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// The exit codes: all of them, and nothing else ends the process. A code is never given another meaning: new ones are added.
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
	exitNotEnded    = 17  // the run is still under way
	exitInterrupted = 130 // Ctrl-C ended the watching; the run goes on
)

// exitHelp is the table above as the help of loopkeeper shows it.
const exitHelp = `Exit codes: 0 completed, 1 error, 2 usage, 10 incomplete, 11 failed, 12 timed out, 13 cancelled, 14 diverged,
  15 exhausted, 16 waiting for a person, 17 not ended yet, 130 watching ended by Ctrl-C while the run goes on`

var exitOfState = map[string]int{
	"completed": exitOK, "incomplete": exitIncomplete, "failed": exitFailed, "timed_out": exitTimedOut, "cancelled": exitCancelled,
	"diverged": exitDiverged, "exhausted": exitExhausted,
}

// exitWith ends the command with a code and no message: everything was said already.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ended is the outcome of a command that showed a run; one in a state that is no end has not ended.
func ended(r *coordinatorv1.Run) error {
	code, ok := exitOfState[r.GetState()]
	switch {
	case needsPerson(r):
		code = exitWaiting
	case !ok:
		code = exitNotEnded
	}
	if code != exitOK {
		return exitWith(code)
	}
	return nil
}

// needsPerson says whether nothing of a run goes on before a person did something.
func needsPerson(r *coordinatorv1.Run) bool {
	return r.GetState() == "suspended" || r.GetState() == "waiting" && r.GetWaits() > 0
}

func usagef(format string, args ...any) usageError {
	return usageError{error: fmt.Errorf(format, args...)}
}

// exitCode is what the process ends with after err.
func exitCode(err error) int {
	var with exitWith
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &with):
		return int(with)
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitError
	}
}
