package cli

import (
	"path/filepath"
	"regexp"
	"strings"
)

// destination is where the user wants the results.
type destination struct {
	out, dir string
	text     bool // out gets the text of the output "result" instead of a batch's items
	before   int  // items of an earlier run that stand in it already
}

func (d destination) empty() bool { return d.out == "" && d.dir == "" }

// name is what people call it.
func (d destination) name() string {
	if d.out != "" {
		return d.out
	}
	return d.dir
}

// again is the command that gets all results of a run there, when nobody watches it now.
func (d destination) again(id string) string {
	switch {
	case d.empty():
		return "loopkeeper watch " + id
	case d.text:
		return "loopkeeper result " + id + " --print " + mainOutput + " --out " + quote(d.out)
	}
	command := "loopkeeper watch " + id
	if d.out != "" {
		out := d.out
		if d.before > 0 {
			out = restOf(out)
		}
		command += " --out " + quote(out)
	}
	if d.dir != "" {
		command += " --out-dir " + quote(d.dir)
	}
	return command
}

// restOf names the file beside out for what is missing there.
func restOf(out string) string {
	ext := filepath.Ext(out)
	return strings.TrimSuffix(out, ext) + "-rest" + ext
}

// harmless is what a shell takes as it is.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// quote makes one word of text for a POSIX shell.
func quote(text string) string {
	if harmless.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// commandWithout is the command line that was given, without some flags and with others.
func (a *app) commandWithout(flags []string, with ...string) string {
	words := []string{"loopkeeper"}
	for i := 0; i < len(a.args); i++ {
		name, _, joined := strings.Cut(a.args[i], "=")
		value, dropped := "", false
		for _, f := range flags {
			if f, takes := strings.CutSuffix(f, "="); name == f {
				dropped = true
				if takes && !joined {
					value = f
				}
			}
		}
		if value != "" {
			i++
		}
		if !dropped {
			words = append(words, quote(a.args[i]))
		}
	}
	for _, w := range with {
		words = append(words, quote(w))
	}
	return strings.Join(words, " ")
}
