package params

import (
	"bytes"
	"net/http"
	"slices"
)

// ImageHead is how many of a body's first bytes Image needs.
const ImageHead = 512

// imageTypes are what models are shown, as http.DetectContentType calls them.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// Image says whether a body is an image that a model can be shown, by what it begins with: PNG, JPEG, WebP or GIF. A text about one is none.
func Image(head []byte) bool {
	head = head[:min(len(head), ImageHead)]
	return slices.Contains(imageTypes, http.DetectContentType(head)) && bytes.IndexByte(head, 0) >= 0 // each has a size in its header, a text no NUL
}
