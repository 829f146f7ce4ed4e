package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
)

// helpWidth is the longest line of a help page, cells: it is read on terminals of all widths, and piped into pagers.
const helpWidth = 80

// narrow makes the help of a command fit helpWidth. What it says is written in lines of any length.
func narrow(c *cobra.Command) {
	paragraphs := strings.Split(c.Long, "\n\n")
	for i, p := range paragraphs {
		indent := ""
		if strings.Contains(p, "\n ") {
			indent = "  "
		}
		paragraphs[i] = ui.Fold(strings.Join(strings.Fields(p), " "), helpWidth, indent)
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	examples := strings.Split(c.Example, "\n")
	for i, line := range examples {
		examples[i] = foldCommand(line)
	}
	c.Example = strings.Join(examples, "\n")
}

// foldCommand continues a command line that is too long in the next one, as a shell takes it: between two words, never within quotes or
// between a flag and its value.
func foldCommand(line string) string {
	var out []string
	for len(line) > helpWidth {
		at, word, quoted := 0, 0, false
		for i, r := range line[:helpWidth-1] {
			switch {
			case r == '\'':
				quoted = !quoted
			case r == ' ' && !quoted:
				if last := strings.TrimSpace(line[word:i]); last != "" && last[0] != '-' {
					at = i
				}
				word = i + 1
			}
		}
		if at == 0 {
			break
		}
		out, line = append(out, line[:at]+" \\"), "      "+line[at+1:]
	}
	return strings.Join(append(out, line), "\n")
}

// helpTemplate is the library's, with flags that fit.
func helpTemplate(template string) string {
	template = strings.ReplaceAll(template, `Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		"More about a command: {{.CommandPath}} COMMAND --help")
	return strings.ReplaceAll(template, "FlagUsages", fmt.Sprintf("FlagUsagesWrapped %d", helpWidth))
}
