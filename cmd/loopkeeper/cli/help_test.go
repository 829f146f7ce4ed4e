package cli

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// Every help page fits a terminal of 80 cells, hidden commands apart, which nobody reads.
func TestEveryHelpPageFitsEightyColumns(t *testing.T) {
	pages := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		var page strings.Builder
		c.SetOut(&page)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		pages++
		for _, line := range strings.Split(page.String(), "\n") {
			if w := ansi.StringWidth(line); w > helpWidth {
				t.Errorf("%s: %d cells: %s", c.CommandPath(), w, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	root := newRoot(&app{})
	root.InitDefaultHelpCmd()
	check(root)
	if pages < 20 {
		t.Errorf("%d pages", pages)
	}
}

// An example that is broken up is still one command of a shell.
func TestExamplesAreBrokenBetweenWords(t *testing.T) {
	const line = "  loopkeeper map --model qwen3:8b --prompt 'Summarise in three points, and say what is new.' --out out.jsonl 'docs/*.md'"
	const want = "  loopkeeper map --model qwen3:8b \\\n      --prompt 'Summarise in three points, and say what is new.' \\\n      --out out.jsonl 'docs/*.md'"
	if got := foldCommand(line); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := foldCommand("  loopkeeper nodes"); got != "  loopkeeper nodes" {
		t.Errorf("got %s", got)
	}
}
