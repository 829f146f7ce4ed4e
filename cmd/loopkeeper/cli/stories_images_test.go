package cli_test

import (
	"encoding/json"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// picture is `picture FILE.png|FILE.jpg`: it makes a small image.
func picture(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.Create(path)
	ts.Check(err)
	dot := image.NewGray(image.Rect(0, 0, 2+len(args[0]), 2)) // files of other names differ
	if filepath.Ext(path) == ".png" {
		ts.Check(png.Encode(f, dot))
	} else {
		ts.Check(jpeg.Encode(f, dot, nil))
	}
	ts.Check(f.Close())
}

// shown is `shown NAME N PROMPT`: the stand-in whose URL is in the variable NAME was shown N images in all, and one with this prompt.
func shown(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	r, err := http.Get(ts.Getenv(args[0]) + "/control/calls") //nolint:noctx // the server is in this process
	ts.Check(err)
	defer r.Body.Close()
	var got struct {
		Calls []struct {
			Prompt string
			Images int
		}
	}
	ts.Check(json.NewDecoder(r.Body).Decode(&got))
	sum, seen := 0, false
	for _, c := range got.Calls {
		sum += c.Images
		seen = seen || c.Images > 0 && c.Prompt == args[2]
	}
	if sum != want || !seen {
		ts.Fatalf("%d images were shown, want %d; prompt %q with one: %v\n%+v", sum, want, args[2], seen, got.Calls)
	}
}
