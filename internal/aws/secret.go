package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Secrets reads secrets of AWS Secrets Manager. It is safe for concurrent use.
type Secrets struct {
	Signer Signer // its Service is not used
	// Endpoint is the URL of the service; that of the region if it is empty.
	Endpoint string
	Client   *http.Client
	Now      func() time.Time
}

// mostSecret is more than a secret may have, which is 64 KiB.
const mostSecret = 256 << 10

// Value is the text of a secret, by its name or ARN, in its current version. Its errors say what AWS says, and never what
// the secret is.
func (s *Secrets) Value(ctx context.Context, id string) (string, error) {
	body, err := json.Marshal(map[string]string{"SecretId": id})
	if err != nil {
		return "", fmt.Errorf("read the secret %q: %w", id, err)
	}
	answer, err := s.call(ctx, "secretsmanager.GetSecretValue", body)
	if err != nil {
		return "", fmt.Errorf("read the secret %q: %w", id, err)
	}
	if answer.SecretString == "" {
		return "", fmt.Errorf("read the secret %q: it has no text", id)
	}
	return answer.SecretString, nil
}

// secretAnswer is an answer, or what went wrong.
type secretAnswer struct {
	SecretString string
	Type         string `json:"__type"`
	Message      string
}

func (s *Secrets) call(ctx context.Context, target string, body []byte) (secretAnswer, error) {
	var answer secretAnswer
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint(), bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", target)
	signer := s.Signer
	signer.Service = "secretsmanager"
	signer.Sign(r, body, s.Now())
	res, err := s.Client.Do(r)
	if err != nil {
		return answer, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(res.Body, mostSecret))
	if err != nil {
		return answer, err
	}
	invalid := json.Unmarshal(data, &answer) != nil // its error would quote the secret
	switch {
	case res.StatusCode != http.StatusOK:
		// The type may be a whole URI, whose end is the name.
		return answer, fmt.Errorf("Secrets Manager answered %d %s %s", res.StatusCode, answer.Type[strings.LastIndexByte(answer.Type, '#')+1:], answer.Message)
	case invalid:
		return answer, fmt.Errorf("Secrets Manager answered no JSON")
	}
	return answer, nil
}

func (s *Secrets) endpoint() string {
	if s.Endpoint != "" {
		return s.Endpoint
	}
	end := ".amazonaws.com/"
	if strings.HasPrefix(s.Signer.Region, "cn-") {
		end = ".amazonaws.com.cn/"
	}
	return "https://secretsmanager." + s.Signer.Region + end
}
