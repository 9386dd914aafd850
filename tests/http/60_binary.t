# Tensors as raw bytes after the JSON, in both directions, and every wrong statement of a size.
model add
model digits
model zero_size
model methods

play binary in, JSON out
post+ /v2/models/add/infer Inference-Header-Content-Length:188 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 200
no-field Inference-Header-Content-Length
body .*"data":\[11.0,22.0,33.0,44.0,55.0,66.0\].*

play binary in and out
post+ /v2/models/add/infer Inference-Header-Content-Length:229 {"parameters":{"binary_data_output":true},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 200
field Content-Type: application/octet-stream
field Inference-Header-Content-Length: [0-9]+
body \{.*"binary_data_size":24.*\} *\x00\x00\x30\x41\x00\x00\xb0\x41\x00\x00\x04\x42\x00\x00\x30\x42\x00\x00\x5c\x42\x00\x00\x84\x42

play binary and JSON mixed, one output binary
post+ /v2/models/add/infer Inference-Header-Content-Length:244 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}],"outputs":[{"name":"output_0","parameters":{"binary_data":true}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@
< 200
field Inference-Header-Content-Length: [0-9]+

play JSON in, binary out
post /v2/models/add/infer {"parameters":{"binary_data_output":true},"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
field Content-Type: application/octet-stream

play the form of an output overrides that of the request
post /v2/models/add/infer {"parameters":{"binary_data_output":true},"outputs":[{"name":"output_0","parameters":{"binary_data":false}}],"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
no-field Inference-Header-Content-Length
body .*"data":\[11.0,22.0,33.0,44.0,55.0,66.0\].*

play a header that covers the whole body
post+ /v2/models/add/infer Inference-Header-Content-Length:162 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
body .*"data":\[11.0,22.0,33.0,44.0,55.0,66.0\].*

play chunked binary
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Inference-Header-Content-Length: 188
> Transfer-Encoding: chunked
>
>> bf\r\n{"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80\r\n2d\r\n?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB\r\n0\r\n\r\n
< 200
body .*"data":\[11.0,22.0,33.0,44.0,55.0,66.0\].*

play too few bytes
post+ /v2/models/add/infer Inference-Header-Content-Length:188 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00p
< 400
open

play too many bytes
post+ /v2/models/add/infer Inference-Header-Content-Length:188 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pBx
< 400
body .*behind the last.*
open

play a size that does not match the shape
post+ /v2/models/add/infer Inference-Header-Content-Length:188 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":20}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":20}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400

play a header length beyond the body
post+ /v2/models/add/infer Inference-Header-Content-Length:1188 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
open

play invalid header lengths
post+ /v2/models/add/infer Inference-Header-Content-Length:-1 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
post+ /v2/models/add/infer Inference-Header-Content-Length:x {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
post+ /v2/models/add/infer Inference-Header-Content-Length:1x {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
post+ /v2/models/add/infer Inference-Header-Content-Length:99999999999999999999 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
post+ /v2/models/add/infer Inference-Header-Content-Length:0x10 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
open

play the header twice
post+ /v2/models/add/infer Inference-Header-Content-Length:188,Inference-Header-Content-Length:188 {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}},{"name":"input_1","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00 A\x00\x00\xa0A\x00\x00\xf0A\x00\x00 B\x00\x00HB\x00\x00pB
< 400
open

play raw bytes need a model with one input
post+ /v2/models/add/infer Inference-Header-Content-Length:0 \x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@
< 400
body .*'add' has 2.*

play raw bytes for a model with one input
post+ /v2/models/methods.encode/infer Inference-Header-Content-Length:0 \x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?\x00\x00\x00?
< 200
field Inference-Header-Content-Length: [0-9]+
body .*"shape":\[2,4\].*

play raw bytes that do not fill a row
post+ /v2/models/methods.encode/infer Inference-Header-Content-Length:0 \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
< 400

play tensors without bytes
post+ /v2/models/zero_size/infer Inference-Header-Content-Length:228 {"inputs":[{"name":"input_0","shape":[3,4],"datatype":"FP32","parameters":{"binary_data_size":48}},{"name":"input_1","shape":[0,4],"datatype":"FP32","parameters":{"binary_data_size":0}}],"parameters":{"binary_data_output":true}}\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@\x00\x00\xe0@\x00\x00\x00A\x00\x00\x10A\x00\x00 A\x00\x000A
< 200
field Inference-Header-Content-Length: [0-9]+

play a tensor that is larger than one read
> POST /v2/models/digits/infer HTTP/1.1
> Host: a
> Inference-Header-Content-Length: 109
> Content-Length: 92269
>
>> {"inputs":[{"name":"input_0","shape":[360,1,8,8],"datatype":"FP32","parameters":{"binary_data_size":92160}}]}
>* 92160 \x3e
< 200
body .*"shape":\[360,10\].*

play JSON that is larger than the loop decodes
> POST /v2/models/digits/infer HTTP/1.1
> Host: a
> Content-Length: 92238
>
>> {"inputs":[{"name":"input_0","shape":[360,1,8,8],"datatype":"FP32","data":[
>* 23039 0.5,
>> 0.5]}]}
< 200
body .*"shape":\[360,10\].*

play JSON that is larger, with an error at its end
> POST /v2/models/digits/infer HTTP/1.1
> Host: a
> Content-Length: 92238
>
>> {"inputs":[{"name":"input_0","shape":[360,1,8,8],"datatype":"FP32","data":[
>* 23039 0.5,
>> 0.x]}]}
< 400
body .*data\[359\].*|.*data\[23039\].*
open
