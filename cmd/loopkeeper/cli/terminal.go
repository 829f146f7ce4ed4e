package cli

import (
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
)

// terminal says whether f is one, for people to look at.
func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// live says whether a screen that redraws itself may be shown on f.
func live(f *os.File) bool {
	return terminal(f) && os.Getenv("TERM") != "dumb" && os.Getenv("ACCESSIBLE") == ""
}

// style is how f may be written to. NO_COLOR, CLICOLOR_FORCE and TERM=dumb are the conventions of no-color.org and
// bixense.com/clicolors.
func (a *app) style(f *os.File) ui.Style {
	s := ui.Style{Unicode: utf8Locale() && os.Getenv("ACCESSIBLE") == "" && os.Getenv("TERM") != "dumb"}
	switch {
	case os.Getenv("NO_COLOR") != "" || a.json():
	case os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("CLICOLOR_FORCE") != "0":
		s.Colour = true
	default:
		s.Colour = live(f) && os.Getenv("CLICOLOR") != "0"
	}
	if terminal(f) {
		s.Width, _ = size(f)
	}
	return s
}

// utf8Locale follows the order in which C programs read the locale. East Asian terminals draw the bars' cells two wide.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		v := strings.ToLower(os.Getenv(name))
		if v == "" {
			continue
		}
		for _, wide := range []string{"zh", "ja", "ko"} {
			if strings.HasPrefix(v, wide) {
				return false
			}
		}
		return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
	}
	return false
}

// size is the terminal's width and height in cells.
func size(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 || height < 5 {
		return 80, 24
	}
	return width, height
}
