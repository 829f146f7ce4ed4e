package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// report says on stderr what went wrong and what to do next, as JSON when that was asked for.
func (a *app) report(err error) {
	e := apierr.As(apierr.FromStatus(err))
	code := string(e.Code)
	if exitCode(err) == exitUsage {
		code = "usage"
	}
	if a.json() {
		next := append([]string{}, e.Next...)
		_ = ui.WriteJSON(a.stderr, map[string]any{"error": map[string]any{"code": code, "message": e.Error(), "next": next, "exit_code": exitCode(err)}})
		return
	}
	fmt.Fprintf(a.stderr, "error: %s\n", e.Error())
	a.next(e.Next...)
}

// next prints what the user can do, one per line.
func (a *app) next(what ...string) {
	lead := "Next: "
	for _, n := range what {
		fmt.Fprintf(a.stderr, "%s%s\n", lead, strings.ReplaceAll(n, "\n", "\n      "))
		lead = "      "
	}
}

// note tells the user something beside the result.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }

// codeOf is the code of an error from the coordinator or from here.
func codeOf(err error) apierr.Code { return apierr.CodeOf(apierr.FromStatus(err)) }

// firstError joins what a command's end left behind to what ended it.
func firstError(err error, then ...error) error {
	if err != nil {
		return err
	}
	return errors.Join(then...)
}
