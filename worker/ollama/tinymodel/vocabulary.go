package tinymodel

import "strings"

// The vocabulary: one token per byte, begin and end of text, and a few phrases that make an answer look like text while
// costing one token each.
const (
	tokenBegin = 256 + iota
	tokenEnd
	firstPhrase
)

// values are what the model likes to put into a JSON string. Each occurs in the sentence of the same index, so that
// something the model quotes from its own text can be found there.
var values = []string{"plan is met", "text says so", "point is clear", "file is fine"}

// sentences are what it likes to say in free text, in this order, some left out.
var sentences = []string{"The plan is met. ", "The text says so. ", "The point is clear. ", "The file is fine. "}

// fillers lengthen a JSON string that is too short for its schema. There are two, because Ollama breaks off an answer
// in which the same token comes 31 times in a row.
var fillers = []string{" and so on", " as it says"}

// Token types of llama.cpp (enum llama_token_type).
const (
	tokenNormal  = 1
	tokenControl = 3
)

// vocabulary returns the tokens' texts in the byte alphabet of GPT-2, and their types.
func vocabulary() (texts []string, types []int32) {
	add := func(text string, kind int32) {
		texts = append(texts, text)
		types = append(types, kind)
	}
	for b := range 256 {
		add(inByteAlphabet(string([]byte{byte(b)})), tokenNormal)
	}
	add("<|bos|>", tokenControl)
	add("<|eos|>", tokenControl)
	for _, phrase := range phrases() {
		add(inByteAlphabet(phrase), tokenNormal)
	}
	return texts, types
}

// phrases returns the texts of the tokens from firstPhrase on.
func phrases() []string {
	var all []string
	all = append(all, values...)
	all = append(all, fillers...)
	return append(all, sentences...)
}

// Where each group of phrases begins.
func firstValue() int    { return firstPhrase }
func firstFiller() int   { return firstPhrase + len(values) }
func firstSentence() int { return firstPhrase + len(values) + len(fillers) }

// inByteAlphabet writes each byte as the rune that GPT-2's tokenizer uses for it: itself where it is printable Latin-1,
// otherwise the next free rune from U+0100 on.
func inByteAlphabet(s string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		out.WriteRune(byteAlphabet[b])
	}
	return out.String()
}

var byteAlphabet = func() (alphabet [256]rune) {
	next := rune(256)
	for b := range alphabet {
		r := rune(b)
		printable := '!' <= r && r <= '~' || 0xA1 <= r && r <= 0xAC || 0xAE <= r && r <= 0xFF
		if !printable {
			r = next
			next++
		}
		alphabet[b] = r
	}
	return alphabet
}()
