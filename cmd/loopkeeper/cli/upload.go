package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	uploads    = 8         // at the same time
	chunkBytes = 256 << 10 // of one message
)

// ref is how a workflow's input names an uploaded body.
type ref struct {
	SHA256 string `json:"ref"`
	Name   string `json:"name"`
	Bytes  uint64 `json:"bytes"`
}

// bodies uploads what has to be uploaded and returns what the workflow's input holds for each item.
func (a *app) bodies(ctx context.Context, c *client, items []input) ([]any, error) {
	out := make([]any, len(items))
	done := make(chan struct{}, len(items)) // a place for each, so that no upload waits for the screen
	var group errgroup.Group
	group.SetLimit(uploads)
	shown := make(chan struct{})
	go func() { defer close(shown); a.showUploads(done, len(items)) }()
	for i, item := range items {
		if item.path == "" {
			out[i] = item.value
			continue
		}
		group.Go(func() error {
			r, err := upload(ctx, c, item)
			out[i] = r
			done <- struct{}{}
			return err
		})
	}
	err := group.Wait()
	close(done)
	<-shown
	return out, err
}

// showUploads counts uploads once they last longer than a second: in place on a terminal, else now and then on a line.
func (a *app) showUploads(done <-chan struct{}, total int) {
	n, began, said := 0, time.Now(), time.Time{}
	redraw, every := live(a.stderr), 10*time.Second
	if redraw {
		every = 100 * time.Millisecond
	}
	for range done {
		n++
		if now := time.Now(); a.json() || now.Sub(began) < time.Second || now.Sub(said) < every {
			continue
		}
		said = time.Now()
		if redraw {
			fmt.Fprintf(a.stderr, "\ruploading %d of %d", n, total)
		} else {
			a.note("uploading %d of %d", n, total)
		}
	}
	if redraw && !said.IsZero() {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
}

// upload stores one text or image with the coordinator, under its key.
func upload(ctx context.Context, c *client, item input) (ref, error) {
	body, err := readBody(item.path, true)
	if err != nil {
		return ref{}, err
	}
	return uploadFrom(ctx, c, item.key, strings.NewReader(body))
}
