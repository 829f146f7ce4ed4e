package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// items are the inputs of a batch as the flags select them.
func (o *mapOptions) items(ctx context.Context, args []string) ([]input, leftOut, error) {
	var wanted []string
	if o.only != "" {
		text, err := readText(o.only)
		if err != nil {
			return nil, leftOut{}, err
		}
		wanted = nonEmptyLines(text)
		if len(wanted) == 0 {
			return nil, leftOut{}, apierr.New(apierr.InvalidArgument, "%s names no item", o.only).WithNext("loopkeeper result RUN --failed-to " + quote(o.only))
		}
		if len(args) == 0 {
			args = o.filesOf(wanted)
		}
	}
	items, left, err := inputs(ctx, args, o.to.dir)
	if err == nil && o.each == "line" {
		items, err = lines(items)
	}
	if err == nil && o.only != "" {
		items, err = selected(items, wanted, o.only)
	}
	if err == nil && o.skip >= len(items) {
		err = apierr.New(apierr.InvalidArgument, "--skip %d leaves none of %d items", o.skip, len(items)).WithNext("loopkeeper runs")
	}
	if err != nil {
		return nil, left, err
	}
	return items[o.skip:], left, nil
}

func nonEmptyLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return out
}

// lineNumber ends the key of an item that is a line.
var lineNumber = regexp.MustCompile(`:[0-9]+$`)

// filesOf are the files that keys are about.
func (o *mapOptions) filesOf(keys []string) []string {
	var out []string
	for _, key := range keys {
		if o.each == "line" {
			key = lineNumber.ReplaceAllString(key, "")
		}
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// selected keeps the items whose keys are wanted; file is where those are from.
func selected(items []input, wanted []string, file string) ([]input, error) {
	var out []input
	missing := slices.Clone(wanted)
	for _, i := range items {
		if slices.Contains(wanted, i.key) {
			out = append(out, i)
			missing = slices.DeleteFunc(missing, func(key string) bool { return key == i.key })
		}
	}
	if len(missing) > 0 {
		return nil, apierr.New(apierr.NotFound, "%s names what is not among the inputs: %s", file, some(missing)).
			WithNext("name the inputs of that run, or none: the keys are then files")
	}
	return out, nil
}
