package params_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
)

// The images are made by the standard library; WebP has no encoder there, so its header is that of RFC 9649, section 2.4.
func TestImagesAreKnownByTheirBytes(t *testing.T) {
	dot := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black})
	made := func(encode func(io.Writer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		body  []byte
		image bool
	}{
		"PNG":              {made(func(w io.Writer) error { return png.Encode(w, dot) }), true},
		"JPEG":             {made(func(w io.Writer) error { return jpeg.Encode(w, dot, nil) }), true},
		"GIF":              {made(func(w io.Writer) error { return gif.Encode(w, dot, nil) }), true},
		"WebP":             {[]byte("RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00"), true},
		"a text about GIF": {[]byte("GIF89a is a format of 1989"), false},
		"PDF":              {[]byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), false},
		"BMP":              {[]byte("BM\x46\x00\x00\x00\x00\x00"), false},
		"SVG":              {[]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), false},
		"nothing":          {nil, false},
	} {
		if got := params.Image(c.body); got != c.image {
			t.Errorf("%s: %v", name, got)
		}
	}
}
