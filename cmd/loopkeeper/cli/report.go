package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// report says on stderr what went wrong, what helps, and which commands come next, as JSON when that was asked for.
func (a *app) report(cmd *cobra.Command, err error) {
	e := apierr.As(apierr.FromStatus(err))
	code, advice := string(e.Code), e.Next
	var usage usageError
	if errors.As(err, &usage) {
		code, advice = "usage", usage.next
		if len(advice) == 0 {
			advice = []string{cmd.CommandPath() + " --help"}
		}
	}
	next, words := advised(a.filled(cmd, advice))
	message := strings.Join(append([]string{e.Error()}, words...), "; ")
	if format := a.asked(); format != "table" {
		object := map[string]any{"error": map[string]any{"code": code, "message": message, "next": append([]string{}, next...), "exit_code": exitCode(err)}}
		write := ui.WriteJSON
		if format == "jsonl" {
			write = ui.WriteJSONLine
		}
		_ = write(a.stderr, object) // there is nobody else to tell
		return
	}
	fmt.Fprintf(a.stderr, "error: %s\n", ui.Text(message))
	a.next(next...)
}

// asked is the form that was asked for, also when the command line was not read to its end.
func (a *app) asked() string {
	if a.json() {
		return a.flags.output
	}
	for i, arg := range a.args {
		for _, flag := range []string{"-o", "--output"} {
			value, ok := strings.CutPrefix(arg, flag)
			if ok && value == "" && i+1 < len(a.args) {
				value = a.args[i+1]
			}
			if value = strings.TrimPrefix(value, "="); ok && (value == "json" || value == "jsonl") {
				return value
			}
		}
	}
	return "table"
}

// next prints the commands that the user can give now, one per line. The one that was just run is no advice.
func (a *app) next(what ...string) {
	lead := "Next: "
	just := "loopkeeper " + strings.Join(a.args, " ")
	for _, n := range what {
		if n == just {
			continue
		}
		fmt.Fprintf(a.stderr, "%s%s\n", lead, strings.ReplaceAll(ui.Text(n), "\n", "\n      "))
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
