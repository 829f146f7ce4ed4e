package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Bounds of the images of one call.
const (
	mostImages     = 16
	mostImageBytes = 16 << 20 // together: what a call may carry
)

// bytesPerImage is what an image counts for where sizes of texts are told: about 1,000 tokens, of which models take 256 (Gemma 3, whatever
// the image) to some 1,300 (Qwen2.5-VL, one for every 28 × 28 pixels of a megapixel). A worker counts the same before it knows better.
const bytesPerImage = 1000 * bytesPerToken

// imageNames are the endings of files that are images of the formats that models are shown.
var imageNames = []string{".png", ".jpg", ".jpeg", ".webp", ".gif"}

// ImageName says whether a file is an image by its name. What it is in truth, its bytes say.
func ImageName(name string) bool {
	return slices.Contains(imageNames, strings.ToLower(path.Ext(name)))
}

// images are refs of stored images, not too many and not too large.
func images(name string, v any) error {
	all, ok := v.([]any)
	if !ok {
		return mustBe(name, "an array", v)
	}
	if len(all) > mostImages {
		return fmt.Errorf("%s has %d images, a call carries at most %d", name, len(all), mostImages)
	}
	var sum float64
	for i, image := range all {
		at := fmt.Sprintf("%s[%d]", name, i)
		if err := object(refFields)(at, image); err != nil {
			return err
		}
		given := image.(map[string]any) //nolint:forcetypeassert // object has said so
		if sha, _ := given["ref"].(string); sha == "" {
			return mustBe(at, "a reference to an image", v.([]any)[i])
		}
		size, _ := given["bytes"].(float64)
		sum += size
	}
	if sum > mostImageBytes {
		return fmt.Errorf("%s has %.0f bytes in all, a call carries at most %d", name, sum, mostImageBytes)
	}
	return nil
}

// imageRef says whether a body is a ref whose name is that of an image. Canonical JSON has the name right before the ref.
func imageRef(raw json.RawMessage) bool {
	before, _, ok := bytes.Cut(raw, []byte(`","ref":"`))
	return ok && len(raw) > 0 && raw[0] == '{' && ImageName(string(before[max(0, len(before)-8):]))
}
