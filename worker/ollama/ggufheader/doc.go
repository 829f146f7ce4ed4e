// Package ggufheader writes GGUF files of well-known models for tests: the header is whole, with every key and tensor that
// decides about memory, and the tensors are a hole in the file, so that 70 GiB take some hundred kilobytes. Parsers
// that were written for real files read them; no runtime computes with them.
//
//	path := ggufheader.Write(t, ggufheader.Llama8B)
package ggufheader
