// Package pictures draws the pictures of docs/concepts.md, out of what real schedulers did: its tests play short stories in virtual time, note
// the changes of status, the calls of the store and the starts that they see, and compare what is drawn of them with docs/pictures. A picture
// whose code has changed fails its test; make generate draws it again. What has no place in a picture is an error, so that nothing is left out.
package pictures
