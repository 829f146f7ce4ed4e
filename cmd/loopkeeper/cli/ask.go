package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// askKey waits for one key on the terminal, without Enter. It returns 0 when over is closed first or nothing can be read.
func (a *app) askKey(over <-chan struct{}) byte {
	fd := int(a.stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return 0
	}
	defer term.Restore(fd, before) // as it was, or there is no terminal to restore
	return a.read(over, func(r cancelreader.CancelReader) byte {
		var key [1]byte
		if _, err := r.Read(key[:]); err != nil {
			return 0
		}
		return key[0]
	})
}

// askYes asks a question whose answer is y or n and Enter.
func (a *app) askYes(ctx context.Context, question string) bool {
	fmt.Fprint(a.stderr, question+" [y/N] ")
	return a.read(ctx.Done(), func(r cancelreader.CancelReader) byte {
		line, err := bufio.NewReader(r).ReadString('\n')
		if answer := strings.ToLower(strings.TrimSpace(line)); err == nil && (answer == "y" || answer == "yes") {
			return 'y'
		}
		return 'n'
	}) == 'y'
}

// read runs one read from the terminal, which gives up when over is closed.
func (a *app) read(over <-chan struct{}, read func(cancelreader.CancelReader) byte) byte {
	r, err := cancelreader.NewReader(a.stdin)
	if err != nil {
		return 0
	}
	defer r.Close()
	got := make(chan byte, 1)
	go func() { got <- read(r) }()
	select {
	case key := <-got:
		return key
	case <-over:
		r.Cancel()
		return <-got
	}
}
