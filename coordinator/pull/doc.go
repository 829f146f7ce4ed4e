// Package pull has machines download models and says which download would pay. Of a model a machine makes one download at a time,
// whoever asks for it.
package pull
