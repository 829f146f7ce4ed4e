package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// nearEnough is how many letters a mistyped command may be away from one that exists.
const nearEnough = 2

// strict makes wrong arguments a usage error of ours and ends every help text with where the exit codes are.
func strict(c *cobra.Command) {
	if c.Args != nil {
		c.Args = checkArgs(c.Args)
	}
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += "\n\nExit codes: loopkeeper --help"
	c.SuggestionsMinimumDistance = nearEnough
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// checkArgs says in our words what check says in the library's.
func checkArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case check(cmd, args) == nil:
			return nil
		case len(args) == 0:
			words := strings.Fields(cmd.Use)
			return usagef("%s is missing", words[len(words)-1])
		case cmd.HasAvailableSubCommands():
			return unknownCommand(cmd, args[0])
		default:
			return usagef("unexpected argument %q", args[len(args)-1])
		}
	}
}

// unknownCommand names the commands that may have been meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	e := usagef("unknown command %q", name)
	for _, near := range cmd.SuggestionsFor(name) {
		e.next = append(e.next, cmd.CommandPath()+" "+near)
	}
	return e
}

// usageError is a command line that was not understood.
type usageError struct {
	error
	next []string // in place of the command's help
}

func (e usageError) Unwrap() error { return e.error }
