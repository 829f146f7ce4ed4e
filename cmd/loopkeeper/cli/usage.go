package cli

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearEnough is how many letters a mistyped command may be away from one that exists.
const nearEnough = 2

// strict makes wrong arguments a usage error of ours and ends every help text, in lines that fit, with where the exit codes are.
func strict(c *cobra.Command) {
	if c.Args != nil {
		c.Args = checkArgs(c.Args)
	}
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += "\n\nExit codes: loopkeeper --help"
	narrow(c)
	c.SuggestionsMinimumDistance = nearEnough
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// checkArgs says in our words what check says in the library's, and refuses an argument without text: it is what an unset variable
// of a shell becomes.
func checkArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names, needed := positionals(cmd.Use)
		if check(cmd, args) == nil {
			return noneEmpty(names, needed, args)
		}
		switch {
		case len(args) < len(needed):
			return missing(cmd, needed[len(args)])
		case cmd.HasAvailableSubCommands():
			return unknownCommand(cmd, args[0])
		default:
			return usagef("unexpected argument %q", args[min(len(names), len(args)-1)])
		}
	}
}

// missing says which argument is, and where its values are listed.
func missing(cmd *cobra.Command, name string) error {
	e := usagef("%s is missing", name)
	list := map[string]string{"RUN": "loopkeeper runs", "MODEL": "loopkeeper models", "NODE": "loopkeeper nodes"}[name]
	if _, answers := cmd.Annotations[answersWaits]; answers {
		list = "loopkeeper approvals"
	}
	if list != "" {
		e.next = []string{list, cmd.CommandPath() + " --help"}
	}
	return e
}

// answersWaits is the annotation of the commands whose runs are found among the approvals.
const answersWaits = "answers-waits"

// positionals are the arguments that a command's usage names, and those of them that it cannot do without. A word in brackets can be
// left out; a flag with its value is none.
func positionals(use string) (names, needed []string) {
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		switch name := strings.Trim(words[i], "[]."); {
		case strings.HasPrefix(name, "-"):
			i++
		case strings.HasPrefix(words[i], "["):
			names = append(names, name)
		default:
			names, needed = append(names, name), append(needed, name)
		}
	}
	return names, needed
}

// noneEmpty refuses an argument without text.
func noneEmpty(names, needed, args []string) error {
	if len(args) == len(needed) {
		names = needed // what can be left out was
	}
	for i, arg := range args {
		switch {
		case strings.TrimSpace(arg) != "":
		case i < len(names):
			return usagef("%s is empty", names[i])
		default:
			return usagef("argument %d is empty", i+1)
		}
	}
	return nil
}

// unknownCommand names the commands that may have been meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	e := usagef("unknown command %q", name)
	for _, near := range cmd.SuggestionsFor(name) {
		line := cmd.CommandPath() + " " + near
		if c, _, err := cmd.Find([]string{near}); err == nil {
			line = cmd.CommandPath() + " " + shortest(c.Use)
		}
		e.next = append(e.next, line)
	}
	return e
}

var (
	optional     = regexp.MustCompile(` ?\[[^\]]*\]`)
	alternatives = regexp.MustCompile(`\|\S*`)
)

// shortest is what a usage cannot do without, and the first of alternatives: a shell would take the bar between them for a pipe.
func shortest(use string) string {
	return strings.TrimRight(alternatives.ReplaceAllString(optional.ReplaceAllString(use, ""), ""), ".")
}

// usageError is a command line that was not understood.
type usageError struct {
	error
	next []string // in place of the command's help
}

func (e usageError) Unwrap() error { return e.error }

// checkText refuses arguments and values of flags that are not UTF-8, which no coordinator takes. Names of files that only this
// machine opens may be any bytes.
func checkText(cmd *cobra.Command) error {
	var err error
	check := func(what, text string) {
		if err == nil && !utf8.ValidString(text) {
			err = usageError{usagef("%s %q is not UTF-8 text", what, text), []string{"convert it to UTF-8; a file must be renamed"}}
		}
	}
	for _, arg := range cmd.Flags().Args() {
		check("the argument", arg)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if kind, _ := pflag.UnquoteUsage(f); kind == "FILE" || kind == "FOLDER" {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, text := range list.GetSlice() {
				check("--"+f.Name, text)
			}
			return
		}
		check("--"+f.Name, f.Value.String())
	})
	return err
}
