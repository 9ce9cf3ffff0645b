package dulyfile

// Questions to people.

// Approvals say where people answer, and by what secret the addresses are known.
type Approvals struct{ URL, Secret string }

// readApprovals reads the key approvals.
func (f *File) readApprovals(p place) error {
	if p.node == nil || p.empty() {
		return nil
	}
	var a Approvals
	var env string
	if err := p.read(map[string]reader{"url": text(&a.URL), "secret_env": text(&env)}); err != nil {
		return err
	}
	if a.URL == "" {
		return p.fail("must have url, the address of the API as people reach it, such as https://duly.example")
	}
	secret, err := f.secretOf(p.of("secret_env"), env)
	if err != nil {
		return err
	}
	a.Secret, f.Approvals = secret, &a
	return nil
}
