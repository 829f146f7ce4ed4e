package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
)

// advised splits what helps into commands that can be typed as they are, and what is said in words. Advice comes from everywhere, also
// from a coordinator of another version: what this program would not understand is no command.
func advised(all []string) (commands, words []string) {
	for _, one := range all {
		if ui.Command(one) && typed(one) {
			commands = append(commands, one)
		} else {
			words = append(words, one)
		}
	}
	return commands, words
}

// typed says whether a command line is understood: of loopkeeper that there is such a command, with these flags and so many arguments.
// Other programs are not asked.
func typed(line string) bool {
	words := shellWords(line)
	if len(words) == 0 || words[0] != "loopkeeper" {
		return len(words) > 0
	}
	root := newRoot(&app{})
	root.SetOut(io.Discard)
	c, rest, err := root.Find(words[1:])
	if err != nil {
		return false
	}
	c.InitDefaultHelpFlag()
	for i, w := range rest {
		if w == "" { // where a person's own words go
			rest[i] = "x"
		}
	}
	return c.ParseFlags(rest) == nil && (slices.Contains(rest, "--help") || c.ValidateArgs(c.Flags().Args()) == nil)
}

// shellWords are the words of a line as a shell takes them, up to a comment.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quoted, begun := rune(0), false
	end := func() {
		if begun {
			words, begun = append(words, word.String()), false
			word.Reset()
		}
	}
	for _, r := range line {
		switch {
		case quoted != 0:
			if r == quoted {
				quoted = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quoted, begun = r, true
		case r == ' ':
			end()
		case r == '#' && !begun:
			return words
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	end()
	return words
}

// filled puts into advice what the command line said already: the run or the workflow that it is about.
func (a *app) filled(cmd *cobra.Command, advice []string) []string {
	known := map[string]string{}
	names, _ := positionals(cmd.Use)
	for i, arg := range cmd.Flags().Args() {
		if i < len(names) && arg != "" {
			for _, name := range strings.Split(names[i], "|") {
				known[name] = arg
			}
		}
	}
	if f := cmd.Flags().Lookup("workflow"); f != nil {
		known["WORKFLOW"] = f.Value.String()
	}
	out := make([]string, len(advice))
	for i, line := range advice {
		words := strings.Split(line, " ")
		for j, w := range words {
			if (w == "RUN" || w == "WORKFLOW") && known[w] != "" {
				words[j] = quote(known[w])
			}
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}
