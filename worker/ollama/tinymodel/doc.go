// Package tinymodel gives tests a real Ollama server and a real model to run on it: a llama of half a megabyte with
// two layers of width 64 over bytes, whose weights are written here and whose answers are short, end by themselves and
// depend on the prompt and the seed. With a format its answers are valid JSON, because the server's grammar decides what
// may come next and the model's preferences only which of it. It knows nothing and says so in no way: what runs on it
// proves mechanics, never quality.
//
//	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
//	server.Create(t, "tiny", tinymodel.Options{})
//
// Start skips the test where Binary is empty; `make test-ollama` builds the server and sets the variable.
package tinymodel
